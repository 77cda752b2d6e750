"""Queries of tables of sketches and of running groups."""
