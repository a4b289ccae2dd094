"""The inspector: protocol recognition, and the path from bytes to findings."""
