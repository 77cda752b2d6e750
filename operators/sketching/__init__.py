"""Messages and rows in, deltas and tables of sketches out, the same on every engine."""
