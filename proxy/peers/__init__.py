"""Live connections for replaying or probing one side of a session."""
