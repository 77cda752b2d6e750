"""The decorators that define how kernels are compiled.

Every kernel is `nogil` (two threads can update two sketches at once), is cached on disk (a second process
compiles nothing) and divides like NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

from .numba_insides import usable

F = TypeVar("F", bound=Callable[..., Any])

BLOCK = 2048
"""Rows hashed at a time: slices of this size are vectorised by LLVM and fit the first-level cache."""


_LINKED: dict[str, Any] = {"no_cpython_wrapper": True}
if usable("linking"):
    from .numba_linking import LinkedCompiler

    _LINKED["pipeline_class"] = LinkedCompiler
_LEAN: dict[str, Any] = {"_nrt": False}


def _compiled(function: F, **options: Any) -> Any:
    # No C wrapper: nothing calls a kernel by its address, and each kernel would compile one.
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
    """Compile a kernel over plain arrays that Python calls: nogil, cached on disk, NumPy's division."""
    return _called(function)


def summing(function: F) -> F:
    """Compile a kernel that may add in any order, for sums that are exact in any order."""
    return _called(function, fastmath={"reassoc", "nsz"})


def lean(function: F) -> F:
    """Compile a kernel that allocates nothing: no `np.empty`, no returned array, only arrays passed in.

    It has no reference counts, which would cost two atomic operations whenever an array is passed or sliced,
    and so dominate a loop over groups.
    """
    return _called(function, **_LEAN)


def inner(function: F) -> F:
    """Compile a lean kernel that only kernels call, once, together with its callers (`numba_linking`).

    Use it for every kernel that Python doesn't call; kernels several calls deep would otherwise be compiled
    many times.
    """
    return _compiled(function, **_LINKED, **_LEAN)


def fused(function: F) -> F:
    """Compile an inner kernel that is always inlined into its caller, whatever its size.

    This is for the whole body of a loop: LLVM can then hoist what doesn't change between iterations. It
    compiles more slowly, so use it only for a measured gain.
    """
    return _compiled(function, forceinline=True, **_LINKED, **_LEAN)


def allocating(function: F) -> F:
    """Compile an inner kernel that may allocate, for example by `np.empty`."""
    return _compiled(function, **_LINKED)


def inlined(function: F) -> F:
    """Compile a scalar helper that is inlined into the kernels that call it."""
    return _called(function, inline="always")
