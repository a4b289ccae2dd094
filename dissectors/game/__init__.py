"""Game tables: from messages to events and the state of a table."""
