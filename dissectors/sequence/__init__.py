"""Sequence diagrams: lifelines of players and servers, with messages as arrows between them."""
