"""The session database: schema, recorder, readers, filters and exports."""
