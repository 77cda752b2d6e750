"""The source `streamgauge-parquet`: reads and sketches Parquet inside Spark's Python workers."""
