"""A real Kafka broker for trials: jars, start, stop."""
