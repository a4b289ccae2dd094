"""Forwarding between clients and servers: listeners, modes, TCP and UDP relays."""
