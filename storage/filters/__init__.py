"""Display filters as SQL conditions, for SQLite and DuckDB."""
