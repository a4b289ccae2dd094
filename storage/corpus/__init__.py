"""A corpus: the contents of many captures as a folder of Parquet files that DuckDB queries."""
