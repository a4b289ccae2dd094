"""Protocol files: protocols described in TOML instead of Python; see docs/protocol-files.md."""
