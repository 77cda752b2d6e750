"""Monitoring a run: its figures as metrics, health, one line in a terminal, and structured logs."""
