"""Changing the fields of messages."""
