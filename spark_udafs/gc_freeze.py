"""Workers that serve many tasks, between which Spark has Python collect its garbage."""

from __future__ import annotations

import gc
from functools import cache


@cache
def freeze_imports() -> None:
    """Once per process: exempt everything loaded by now from garbage collection.

    Spark collects garbage after each task, which takes a tenth of a second with all modules of Numba and
    Polars loaded. To ask Python whether it was done takes a fifth of that, so it is remembered.
    """
    gc.collect()
    gc.freeze()
