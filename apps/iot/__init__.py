"""Sensors: thresholds with hysteresis, dead, stuck and jumping ones, what is unusual for them."""
