"""Kiebitz: a transparent relay and traffic inspector for networked table games."""
