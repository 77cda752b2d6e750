"""A real Kafka broker to try things on: jars, start, stop."""
