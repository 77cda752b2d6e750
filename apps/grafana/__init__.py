"""Dashboards for Grafana: for a run's metrics, and for the tables of a query server."""
