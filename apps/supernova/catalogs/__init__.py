"""Extracts of catalogues in local files: known objects at the position of an alert."""
