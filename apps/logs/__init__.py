"""Logs: visitors, errors, latency, new kinds of messages, silence, password guessing."""
