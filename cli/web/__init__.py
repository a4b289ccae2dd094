"""The web interface: server, API, page, and the page as a single file."""
