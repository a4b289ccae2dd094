"""The add-on for mitmproxy: a view of its flows, and their recording."""
