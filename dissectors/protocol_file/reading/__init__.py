"""The reader of protocol files: from TOML to a `Specification`, or to all mistakes with their places."""
