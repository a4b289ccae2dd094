"""The inspector: protocol recognition and the way from bytes to findings."""
