"""Rules over closed windows: what fires, when, once, and why."""
