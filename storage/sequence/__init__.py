"""Sequence diagrams of recorded sessions."""
