"""What is kept: the session database, its recorder, timeline, filters and exports."""
