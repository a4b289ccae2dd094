"""What is counted of a session: what was said, and what happened at each table."""
