"""A live recording: its journal, the process that records it, and what is shown meanwhile."""
