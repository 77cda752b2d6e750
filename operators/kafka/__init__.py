"""Kafka's side of a stream: messages in as Arrow, tables out."""
