"""Applying rules to closed windows: by columns, or row by row."""
