"""Schafkopf with the short pack: four players, six cards each, over TCP."""
