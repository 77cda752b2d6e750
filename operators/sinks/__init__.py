"""Where the closed windows of a run go: Kafka, Parquet, a topic of tables."""
