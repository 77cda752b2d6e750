"""Alerts to where people are: grouped, silenced, and sent by a thread that holds no run up."""
