"""Rules about prices and trades that need sessions, splits, bands or the order of arrival."""
