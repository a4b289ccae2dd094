"""Replay of a recorded session to live peers."""
