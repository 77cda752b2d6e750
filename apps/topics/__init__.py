"""Show Kafka's topics and their decoded messages, on the screen or as JSON."""
