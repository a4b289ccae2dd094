"""Readers of a session: timeline, messages, positions and visibility."""
