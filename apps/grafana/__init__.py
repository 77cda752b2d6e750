"""Dashboards for Grafana: of a run's metrics, and of the tables of a query server."""
