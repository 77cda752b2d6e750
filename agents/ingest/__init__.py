"""Agents that ingest files, feeds and sensors into Kafka, with an account of everything they read."""
