"""Bytes and context that show a diagnostic: excerpts with carets."""
