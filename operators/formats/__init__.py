"""Messages' bytes as typed columns."""
