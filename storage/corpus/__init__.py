"""A corpus: what was found in many captures, as a folder of Parquet that DuckDB answers from."""
