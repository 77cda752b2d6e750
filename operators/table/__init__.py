"""The table of sketches: its schema, merging, queries and sets."""
