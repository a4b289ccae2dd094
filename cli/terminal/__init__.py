"""Terminal output: all writes to stdout and stderr, and the layout of listings and excerpts."""
