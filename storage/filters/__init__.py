"""Display filters as conditions of SQL, for SQLite and DuckDB."""
