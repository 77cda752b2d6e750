"""Decoding the bytes of messages into typed columns, and encoding rows."""
