"""A question to a table of sketches: its kinds, and the keys that it selects."""
