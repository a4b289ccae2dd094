"""Columns and rows of the listings, shared by commands, corpus and page."""
