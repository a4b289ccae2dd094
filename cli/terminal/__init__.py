"""What draws and writes: the one way to stdout and stderr, and how listings and excerpts look there."""
