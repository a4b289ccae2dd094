"""Exports: pcapng, JSON lines, CSV, Parquet and Datasette metadata."""
