"""Sketching messages and rows into deltas and tables of sketches, the same on every engine."""
