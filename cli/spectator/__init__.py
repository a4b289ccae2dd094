"""What one viewer sees of a session: positions, events, and renderings by perspective."""
