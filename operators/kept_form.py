"""The form of what is kept from one release to the next: its number, and the refusal of newer ones.

What is written carries the number of its form; what carries none is of form 1, from before there were
numbers. A release reads the form that it writes and the one before. It refuses newer ones rather than guess:
what they leave out, or mean by the same words, it can't know.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..sketches.core.errors import StreamgaugeError


class WrittenByNewer(StreamgaugeError, RuntimeError):
    """What was kept was written by a newer version of streamgauge than the one that reads it."""


def form_of(kept: Mapping[str, Any], newest: int, what: str) -> int:
    """The form of what is kept, 1 unless it says another; `newest` is the one that this release writes.

    Raises `WrittenByNewer` for a newer one, and `ValueError` for what isn't the number of a form.

    >>> form_of({}, 2, "the merger's state"), form_of({"form": 2}, 2, "the merger's state")
    (1, 2)
    >>> form_of({"form": 3}, 2, "the merger's state")
    Traceback (most recent call last):
    streamgauge.operators.kept_form.WrittenByNewer: the merger's state was written by a newer version of ...
    """
    form = kept.get("form", 1)
    if type(form) is not int or form < 1:
        raise ValueError(f"the form of {what} must be an integer ≥ 1, got {form!r}")
    if form > newest:
        raise WrittenByNewer(
            f"{what} was written by a newer version of streamgauge (form {form}; this one reads forms up to "
            f"{newest}), and nothing was changed: go on with that version, or a newer one"
        )
    return form
