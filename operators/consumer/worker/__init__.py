"""The sketching worker: rows of its partitions in, deltas to the table topic out."""
