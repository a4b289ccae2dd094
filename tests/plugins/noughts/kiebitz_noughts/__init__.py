"""Noughts and crosses over TCP, one message a line. Made up as an example."""
