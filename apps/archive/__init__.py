"""Topics kept as Parquet files, by the command line."""
