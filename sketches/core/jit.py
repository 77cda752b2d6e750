"""The one place that says how kernels are compiled.

Every kernel is `nogil` (two threads may update two sketches at once), cached on disk (a second process
compiles nothing) and divides as NumPy does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

from .linked import LinkedCompiler

F = TypeVar("F", bound=Callable[..., Any])

BLOCK = 2048
"""Rows hashed at a time: slices of this size are vectorised by LLVM and stay in the first-level cache."""


def kernel(function: F) -> F:
    """Compile a kernel over plain arrays: nogil, cached, NumPy's division."""
    compiled: Any = numba.njit(nogil=True, cache=True, error_model="numpy")(function)
    return compiled


def lean(function: F) -> F:
    """Compile a kernel that allocates nothing: no `np.empty`, no array returned, only arrays handed in.

    Without reference counts, which otherwise cost two atomic operations wherever an array is passed on or
    sliced: what a loop over groups spends its time on.
    """
    without_counts: Any = {"_nrt": False}
    compiled: Any = numba.njit(nogil=True, cache=True, error_model="numpy", **without_counts)(function)
    return compiled


def inner(function: F) -> F:
    """Compile a lean kernel that only kernels call, with them and not before (`linked`).

    Nothing of it is cached but what is cached of them. Any kernel that no Python code calls should be one:
    calls that lie several deep would else be compiled many times over.
    """
    options: Any = {"_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiled: Any = numba.njit(nogil=True, error_model="numpy", pipeline_class=LinkedCompiler, **options)(
        function
    )
    return compiled


def inlined(function: F) -> F:
    """Compile a scalar helper that is inlined into the kernels that call it."""
    compiled: Any = numba.njit(nogil=True, cache=True, error_model="numpy", inline="always")(function)
    return compiled
