"""Relay modes that run inside mitmproxy."""
