"""Import of captured packets as a recorded session, on one core or two."""
