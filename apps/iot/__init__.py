"""Sensors: thresholds with hysteresis, dead, stuck and jumping sensors, and unusual values."""
