"""Extracts of catalogues in local files: what is known to lie where an alert is."""
