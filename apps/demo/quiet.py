"""Suppress the lines that Java and Spark write directly to the file descriptor of standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet() -> Iterator[None]:
    """Within the block, drop what this process and its children write to standard error.

    Engines' errors are raised as exceptions; code that has to write uses a copy of the descriptor.
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
