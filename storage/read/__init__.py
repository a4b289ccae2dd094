"""Reading a session: timeline, messages, positions and visibility."""
