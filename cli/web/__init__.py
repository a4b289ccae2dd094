"""The table in the browser: a server, its API, its page, and the same page as one file."""
