"""A lesson: a relay for each group, their recordings, and the servers that it starts."""
