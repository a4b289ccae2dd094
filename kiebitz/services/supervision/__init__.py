"""Journals on disk, and the supervised processes that read them."""
