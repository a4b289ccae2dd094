"""From captured packets to a recorded session, on one core or two."""
