"""Supervising a run: its plans, its workers and mergers, their results, and monitoring."""
