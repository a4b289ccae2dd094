"""The database file: schema, formats, opening and validation."""
