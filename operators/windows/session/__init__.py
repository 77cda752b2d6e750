"""For each group, its rows up to a pause."""

from .definition import Session, SessionTable

__all__ = ["Session", "SessionTable"]
