"""Steps over rows: deduplication, filling, joins with tables and between streams."""
