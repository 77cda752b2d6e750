"""The table topic: deltas and snapshots as messages, and what can be derived from them."""
