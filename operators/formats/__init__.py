"""From the bytes of messages to typed columns."""
