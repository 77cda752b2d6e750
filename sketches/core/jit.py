"""The one place that says how kernels are compiled.

Every kernel is `nogil` (two threads may update two sketches at once), kept on disk (a second process compiles
nothing) and divides as NumPy does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

from .numba_insides import usable

F = TypeVar("F", bound=Callable[..., Any])

BLOCK = 2048
"""Rows hashed at a time: slices of this size are vectorised by LLVM and stay in the first-level cache."""


_LINKED: dict[str, Any] = {"no_cpython_wrapper": True}
if usable("linking"):
    from .numba_linking import LinkedCompiler

    _LINKED["pipeline_class"] = LinkedCompiler
_LEAN: dict[str, Any] = {"_nrt": False}


def _compiled(function: F, **options: Any) -> Any:
    # No wrapper for C: nothing calls a kernel by its address, and it would be compiled with each.
    options |= {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    return numba.njit(**options)(function)


def _called(function: F, **options: Any) -> F:
    compiled = _compiled(function, **options)
    if usable("cache"):
        from .kernel_cache import KernelCache

        compiled._cache = KernelCache(function, __name__)
    else:
        compiled.enable_caching()
    return compiled


def kernel(function: F) -> F:
    """Compile a kernel over plain arrays that Python calls: nogil, kept on disk, NumPy's division."""
    return _called(function)


def summing(function: F) -> F:
    """Compile a kernel that may add up in any order, for sums that are exact in each."""
    return _called(function, fastmath={"reassoc", "nsz"})


def lean(function: F) -> F:
    """Compile a kernel that allocates nothing: no `np.empty`, no array returned, only arrays handed in.

    Without reference counts, which otherwise cost two atomic operations wherever an array is passed on or
    sliced: what a loop over groups spends its time on.
    """
    return _called(function, **_LEAN)


def inner(function: F) -> F:
    """Compile a lean kernel that only kernels call: with them, and not before as well (`numba_linking`).

    Any kernel that Python doesn't call should be one: what lies several calls deep would else be compiled
    many times over.
    """
    return _compiled(function, **_LINKED, **_LEAN)


def fused(function: F) -> F:
    """Compile an inner kernel that becomes a part of its caller, whatever its size.

    For what is all of a loop's body: LLVM then sees what stays the same from one turn to the next. That takes
    it longer, so there must be a measured gain.
    """
    return _compiled(function, forceinline=True, **_LINKED, **_LEAN)


def allocating(function: F) -> F:
    """Compile an inner kernel that isn't lean: it may call `np.empty`."""
    return _compiled(function, **_LINKED)


def inlined(function: F) -> F:
    """Compile a scalar helper that is inlined into the kernels that call it."""
    return _called(function, inline="always")
