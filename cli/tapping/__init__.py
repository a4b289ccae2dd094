"""What is recorded here is published, too: a process of its own sends what its journal holds."""
