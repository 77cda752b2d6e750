"""Convert arguments of any type to plain Python values, and format them for errors."""

from __future__ import annotations

import operator
from typing import Any

from .lazy import np, pa

_MOST_SHOWN = 80


def plain(value: Any) -> Any:
    """Convert NumPy and Arrow scalars to Python's own types; return anything else unchanged.

    >>> plain(np.array(7)), plain(pa.scalar(0.5)), plain([7])
    (7, 0.5, [7])
    """
    if isinstance(value, pa.Scalar):
        return value.as_py()
    if isinstance(value, np.ndarray) and not value.ndim:
        value = value[()]
    # NumPy times in some units would become bare numbers.
    times = isinstance(value, (np.datetime64, np.timedelta64))
    return value.item() if isinstance(value, np.generic) and not times else value


def exact_integer(value: Any) -> int | None:
    """Convert an integer of any type to an int; None for booleans and anything else.

    >>> exact_integer(np.int8(7)), exact_integer(7.0), exact_integer(True)
    (7, None, None)
    """
    value = plain(value)
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        return None
    try:
        return operator.index(value)
    except TypeError:  # an array of several
        return None


def shown(value: Any) -> str:
    """Format an argument for an error: in one line, and shortened if long.

    >>> shown(np.zeros((2, 2)))
    'array([[0., 0.], [0., 0.]])'
    """
    text = " ".join(repr(value).split())
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 3]}..."
