"""Streams straight off Kafka: workers, the log of deltas, the merger."""
