"""Statistics of a session's messages and events."""
