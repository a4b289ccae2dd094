"""The public view of a session: typed records and messages in detail."""
