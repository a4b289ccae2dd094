"""Interoperability runs: every server of a course with every client."""
