"""Replay of a recorded session: its script, the peers in it, and the lines they expect."""
