"""Errors in the log of deltas."""

from __future__ import annotations

from ...sketches.core.errors import StreamgaugeError


class DeltaError(StreamgaugeError, ValueError):
    """A delta that can't be merged: of another definition, damaged, or not the next of its partition."""
