"""The query server."""
