"""The merging worker: deltas of the table topic in, closed windows out."""
