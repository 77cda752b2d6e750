"""Avro messages, with and without a schema registry."""
