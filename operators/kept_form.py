"""The format version of state that outlives a release, and the refusal of newer ones.

Stored state carries its format version in the field `form`; without the field it is version 1. A release
reads the version that it writes and the one before. It refuses newer ones rather than guess, because it
can't know which fields they omit, or use with another meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..sketches.core.errors import StreamgaugeError


class WrittenByNewer(StreamgaugeError, RuntimeError):
    """Stored state that a newer version of streamgauge has written."""


def form_of(kept: Mapping[str, Any], newest: int, what: str) -> int:
    """The format version of stored state, 1 by default; `newest` is the version that this release writes.

    Raises `WrittenByNewer` for a newer one, and `ValueError` for anything but an integer ≥ 1.

    >>> form_of({}, 2, "the merger's state"), form_of({"form": 2}, 2, "the merger's state")
    (1, 2)
    >>> form_of({"form": 3}, 2, "the merger's state")
    Traceback (most recent call last):
    streamgauge.operators.kept_form.WrittenByNewer: the merger's state was written by a newer version of ...
    """
    form = kept.get("form", 1)
    if type(form) is not int or form < 1:
        raise ValueError(f"the format version of {what} must be an integer ≥ 1, got {form!r}")
    if form > newest:
        raise WrittenByNewer(
            f"{what} was written by a newer version of streamgauge (format version {form}; this one reads up "
            f"to {newest}), and nothing was changed: continue with that version, or a newer one"
        )
    return form
