"""Read bytes as sketches, according to a function's name and options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from inspect import signature
from typing import Any

import pyarrow as pa

from ...operators.families import Family
from ...sketches.core.protocol import SketchError

_LIKE = {"lg_k": 12, "mode": "sum"}
"""Sample values, for the types of the options for reading."""


def read_options(line: Family) -> dict[str, Any]:
    """Return the options for reading, which bytes and item kind don't provide, with values of their types.

    >>> from ...operators.families import FAMILIES
    >>> read_options(FAMILIES["distinct_set"])
    {'lg_k': 12}
    """
    sketch: Any = line.sketch_class()
    return {name: _LIKE[name] for name in signature(sketch.from_bytes).parameters if name in _LIKE}


def reader(function: str, line: Family, kind: str) -> Callable[..., Any]:
    """Return a function that reads bytes with items of that kind as a sketch; it accepts the `read_options`.

    It raises `SketchError` for other bytes, and if a required kind is missing: bytes read as the wrong kind
    would still look like a sketch.
    """

    def refuse(image: bytes, **options: Any) -> Any:
        alternatives = ", ".join(f"{function}_{one}" for one in line.aggregate.kinds)
        raise SketchError(
            f"{function}: the bytes of such a sketch don't say what kind of items it holds; write "
            f"{alternatives}"
        )

    if line.aggregate.must_name_kind and not kind:
        return refuse
    sketch: Any = line.sketch_class()
    return partial(sketch.from_bytes, kind=kind) if kind in line.aggregate.kinds else sketch.from_bytes


def check_sketches(function: str, arguments: Mapping[str, pa.Array]) -> None:
    """Raise `TypeError` for sketch arguments that are not bytes."""
    for name in ("sketch", "other"):
        kind = arguments[name].type if name in arguments else pa.null()
        if not (pa.types.is_null(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind)):
            raise TypeError(f"{function}: {name} must be a sketch, a column of type BINARY; got {kind}")
