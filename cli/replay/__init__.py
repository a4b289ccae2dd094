"""`kiebitz replay` to a pipe and to live peers."""
