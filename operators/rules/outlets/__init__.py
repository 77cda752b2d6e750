"""Sending alerts to people: grouped, silenced, and sent by a thread that never blocks a run."""
