"""Bytes read as sketches, by what a function's name and options say of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from inspect import signature
from typing import Any

import pyarrow as pa

from ...operators.families import Family
from ...sketches.core.protocol import SketchError

_LIKE = {"lg_k": 12, "mode": "sum"}
"""Values of the kind that an option of reading has."""


def read_options(line: Family) -> dict[str, Any]:
    """What reading takes beside the bytes and the kind of item, as they don't say it, and a value like it.

    >>> from ...operators.families import FAMILIES
    >>> read_options(FAMILIES["distinct_set"])
    {'lg_k': 12}
    """
    sketch: Any = line.sketch_class()
    return {name: _LIKE[name] for name in signature(sketch.from_bytes).parameters if name in _LIKE}


def reader(function: str, line: Family, kind: str) -> Callable[..., Any]:
    """What reads bytes that hold items of that kind as a sketch; it takes the `read_options` by name.

    It raises `SketchError` for other bytes, and where the kind must be given and is not: bytes read as the
    wrong kind would still look like a sketch.
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
    """Raise `TypeError` for arguments that should be sketches and are not bytes."""
    for name in ("sketch", "other"):
        kind = arguments[name].type if name in arguments else pa.null()
        if not (pa.types.is_null(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind)):
            raise TypeError(f"{function}: {name} must be a sketch, a column of type BINARY; got {kind}")
