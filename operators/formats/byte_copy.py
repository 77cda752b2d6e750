"""Copying byte strings between buffers, many at a time."""

from __future__ import annotations

from ...sketches.core.compilation.jit import kernel
from .address_intrinsics import copy


@kernel
def copy_spans(data, starts, ends, into, to):
    """Copy ``data[starts[i] : ends[i]]`` to ``into`` from ``to[i]`` on, for each i."""
    base = into.ctypes.data
    origin = data.ctypes.data
    for i in range(len(starts)):
        copy(base + to[i], origin + starts[i], ends[i] - starts[i])
