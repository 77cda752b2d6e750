"""The table topic: deltas and snapshots as its messages, what lies in it, what follows from them."""
