"""Destinations of a run's closed windows: Kafka, Parquet, a topic of tables."""
