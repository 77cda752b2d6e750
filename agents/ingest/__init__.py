"""Agents: what happens on a machine, into Kafka; with an account of all that was read."""
