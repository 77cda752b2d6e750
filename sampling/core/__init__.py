"""The basis of every sample: items, priorities, heaps, skips and bytes."""
