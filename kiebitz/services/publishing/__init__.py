"""Publishing of a recording: a process that sends everything in a journal."""
