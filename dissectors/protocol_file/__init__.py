"""Protocol files: protocols described in TOML instead of Python; see docs/protocol-files.md."""

MAX_SIZE = 256 << 10
"""Maximum size of a protocol file in bytes."""
