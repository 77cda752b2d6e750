"""Running streams directly on Kafka: workers, the log of deltas, the merger."""
