"""Catan, over TCP: one JSON object after another."""
