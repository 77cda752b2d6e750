"""The base of all samples: items, priorities, heaps, skips and bytes."""
