"""Make the garbage collection cheap that Spark triggers after each task of a worker."""

from __future__ import annotations

import gc
from functools import cache


@cache
def freeze_imports() -> None:
    """Once per process: exempt everything loaded by now from garbage collection.

    Spark collects garbage after each task, which takes a tenth of a second with all modules of Numba and
    Polars loaded. Asking Python whether they are already exempt takes a fifth of that, so a flag records it.
    """
    gc.collect()
    gc.freeze()
