"""Standard error without the lines of engines, which Java and Spark write to the file descriptor itself."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet() -> Iterator[None]:
    """Within the block what this process and those that it starts write to standard error is dropped.

    Errors of engines come as exceptions; whoever has something to say has a copy of the descriptor.
    """
    sys.stderr.flush()
    before = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(before, 2)
        os.close(before)
        os.close(nowhere)
