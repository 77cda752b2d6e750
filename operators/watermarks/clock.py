"""The wall clock, protected against being set back."""

from __future__ import annotations

import time

_BEGAN = time.time() - time.monotonic()


def wall_clock() -> float:
    """Seconds since 1970, UTC, by a clock that is never set back while this process lives.

    Rows are checked against it: if it were set back by hours, every row that is on time would seem to be
    ahead.
    """
    return max(time.time(), _BEGAN + time.monotonic())
