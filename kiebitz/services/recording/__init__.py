"""A live recording: its journal, the process that records it, and its display."""
