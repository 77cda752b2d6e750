"""What can be wrong with the log."""

from __future__ import annotations


class DeltaError(ValueError):
    """A delta that can't be taken: of another definition, damaged, or not the next of its partition."""
