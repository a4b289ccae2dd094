"""A recording is published, too: a process of its own sends all that its journal holds."""
