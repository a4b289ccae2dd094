"""A viewer's view of a session: positions, events, and renderings by perspective."""
