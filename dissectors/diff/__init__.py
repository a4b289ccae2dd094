"""Comparison of two sessions by their events: alignment, players, games and values that name something."""
