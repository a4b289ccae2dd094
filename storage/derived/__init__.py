"""Sessions derived from recorded bytes: redissection, edits, excerpts."""
