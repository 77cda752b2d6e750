"""Questions about a table of sketches: their kinds, and the keys that they select."""
