"""Writing a session: recorder, rows, rotation and resuming."""
