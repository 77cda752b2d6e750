"""How tests wait: for a condition, with a limit that a slow machine does not reach."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(condition: Callable[[], object], seconds: float = 120.0) -> None:
    """Wait until the condition holds; fails after so many seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"still not true after {seconds:.0f} s"
        time.sleep(0.02)
