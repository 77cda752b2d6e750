"""Windows that begin together and end a step after each other: a total so far, at each step."""

from .definition import Cumulate, CumulateTable

__all__ = ["Cumulate", "CumulateTable"]
