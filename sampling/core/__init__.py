"""What every sample stands on: items, priorities, heaps, jumps and bytes."""
