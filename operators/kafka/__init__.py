"""The Kafka client that both engines use: settings, topics, reading, errors."""
