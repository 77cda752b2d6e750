"""The table of sketches: its schema, merging, questions and sets."""
