"""Logs: visitors, errors, latency, what is new, what stops, who tries passwords."""
