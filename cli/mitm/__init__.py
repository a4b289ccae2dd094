"""What runs within a mitmproxy that a user runs: a view of its flows, and their recording."""
