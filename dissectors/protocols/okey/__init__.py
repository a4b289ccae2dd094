"""Okey: four players in a lobby who draw and put tiles, over TCP, in lines of four-letter commands."""
