"""The number of array bytes that an object holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa


def held_bytes(*objects: Any) -> int:
    """Count the bytes of all NumPy and Arrow arrays reachable from these objects, each array once.

    Sketches are stored in a few large arrays, so this is their memory, except for some hundred bytes per
    object.

    >>> held_bytes([np.zeros(10), {"a": np.zeros(5, np.int8)}])
    85
    """
    seen: set[int] = set()
    waiting, total = list(objects), 0
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, _PLAIN):
            continue
        seen.add(id(one))
        if isinstance(one, np.ndarray):
            if isinstance(one.base, np.ndarray):
                waiting.append(one.base)
            else:
                total += one.nbytes
        elif isinstance(one, pa.Array | pa.ChunkedArray | pa.Table):
            total += one.get_total_buffer_size()
        else:
            waiting.extend(_parts(one))
    return total


_PLAIN = (int, float, str, bytes, bool, type(None), type, pa.DataType, pa.Schema)


def _parts(one: Any) -> Iterator[Any]:
    if isinstance(one, Mapping):
        yield from one.values()
    elif isinstance(one, list | tuple | set | frozenset):
        yield from one
    else:
        yield from getattr(one, "__dict__", {}).values()
        for kind in type(one).__mro__:
            for name in getattr(kind, "__slots__", ()):
                if hasattr(one, name):
                    yield getattr(one, name)
