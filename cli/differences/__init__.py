"""Reports of differences between sessions and states."""
