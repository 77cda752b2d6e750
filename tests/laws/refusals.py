"""What a family may refuse, in one table: columns, row-wise inputs, names, other sketches, bytes, groups.

A call that raises must raise one of `ERRORS`, in our words and not in Arrow's, and leave all as it was.
What one family refuses another may take, so a line says no more than what to try, unless it is `certain`.
"""

from __future__ import annotations

import decimal
import inspect
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from streamgauge.sketches.core.protocol import SketchError

from .families import CASES, Family
from .streams import fresh
from .test_equality import ANOTHER

ERRORS = (SketchError, TypeError, ValueError, IndexError, OverflowError)
NAMES = ("weight", "weights", "time", "times", "timestamps", "at", "key", "keys", "value", "priority")
"""Words for further inputs; no family uses most of them."""
ROWS = 4
Attempt = Callable[[Any], Any]


@dataclass(frozen=True)
class Refusal:
    """`attempt` tries something with a sketch, or with groups; if `certain`, it must be refused."""

    name: str
    attempt: Attempt
    certain: bool = False


def _text(*values: bytes) -> pa.Array:
    return pa.array(values, pa.binary()).view(pa.string())


COLUMNS: dict[str, Callable[[], Any]] = {
    "texts": lambda: ["a", "b", "c", "d"],
    "bytes": lambda: [b"a", b"b\xff", b"c", b"d"],
    "invalid UTF-8": lambda: _text(b"a", b"caf\xe9", b"\xff\xfe", b"d"),
    "longs": lambda: [1, 2, 3, 4],
    "longs no double holds": lambda: np.array([1, 2, 3, 10**17 + 1]),
    "negative longs": lambda: np.array([-1, -(2**63), 3, 4]),
    "unsigned ones beyond int64": lambda: np.array([1, 2, 3, 2**64 - 1], np.uint64),
    "doubles": lambda: [0.5, 1.0, 2.0, 1e300],
    "NaN and infinities": lambda: [0.5, float("nan"), float("inf"), -float("inf")],
    "decimals": lambda: [decimal.Decimal("0.5"), decimal.Decimal(7), decimal.Decimal(8), decimal.Decimal(9)],
    "times": lambda: [datetime(2026, 7, day) for day in (1, 2, 3, 4)],
    "booleans": lambda: [True, False, None, True],
    "records": lambda: [{"a": 1}, {"a": 2}, {"a": 3}, {"a": 4}],
    "records of one name twice": lambda: pa.StructArray.from_arrays([pa.array([1, 2, 3, 4])] * 2, ["a", "a"]),
    "maps": lambda: pa.array([[("a", 1)], [("b", 2)], [], [("c", 3)]], pa.map_(pa.string(), pa.int64())),
    "spans of months": lambda: pa.array([(1, 2, 3)] * ROWS, pa.month_day_nano_interval()),
    "lists of texts and gaps": lambda: [["a", None], [], ["b"], ["c"]],
    "several types": lambda: [1, "a", 2.5, None],
    "a type last": lambda: [1.0, 2.0, 3.0, object()],
    "objects": lambda: [object()] * ROWS,
    "complex numbers": lambda: np.array([1j, 2, 3, 4]),
    "a matrix": lambda: np.ones((ROWS, 2)),
}

GIVEN: dict[str, Any] = {
    "one too few": lambda: [1, 1, 1],
    "one too many": lambda: [1] * (ROWS + 1),
    "nothing": lambda: None,
    "a gap": lambda: [1, 1, 1, None],
    "NaN last": lambda: [1.0, 1.0, 1.0, float("nan")],
    "an infinity last": lambda: [1.0, 1.0, 1.0, float("inf")],
    "a negative one last": lambda: [1, 1, 1, -1],
    "a fraction last": lambda: [1, 1, 1, 0.5],
    "a tiny one last": lambda: [1.0, 1.0, 1.0, 1e-300],
    "a huge one last": lambda: [1.0, 1.0, 1.0, 1e300],
    "beyond int32 last": lambda: [1, 1, 1, 2**31],
    "the largest long last": lambda: [1, 1, 1, 2**63 - 1],
    "two of the largest": lambda: [1, 1, 2**62, 2**62],
    "beyond int64 last": lambda: np.array([1, 1, 1, 2**64 - 1], np.uint64),
    "texts": lambda: ["a", "b", "c", "d"],
    "records": lambda: [{"a": 1}, {"a": 2}, {"a": 3}, {"a": 4}],
    "maps": COLUMNS["maps"],
    "objects": COLUMNS["objects"],
    "several types": COLUMNS["several types"],
    "pairs": lambda: np.ones((ROWS, 2)),
}


def _update(groups: bool) -> Callable[..., Any]:
    """The update of a sketch, or of groups with the rows spread over them."""
    return lambda to, values, **given: to.update(
        *((np.arange(ROWS) % len(to),) if groups else ()), values, **given
    )


def accepted_inputs(of: Any) -> tuple[str, ...]:
    """The further inputs that an `update` names."""
    names = inspect.signature(of.update).parameters
    return tuple(name for name in names if name not in ("self", "groups", "values"))


def updates(family: Family, kind: str, groups: bool) -> Iterator[Refusal]:
    """Everything to try with `update`, by its columns and inputs."""
    update, named = _update(groups), accepted_inputs(family.groups if groups else family.single)
    plain, rows = fresh(kind, 1, ROWS), np.arange(ROWS)
    usual = family.inputs(rows)
    for name, make in COLUMNS.items():
        yield Refusal(f"values: {name}", lambda to, make=make: update(to, make(), **usual))
    for one, (name, make) in itertools.product(named, GIVEN.items()):
        yield Refusal(f"{one}=: {name}", lambda to, a=one, b=make: update(to, plain, **{**usual, a: b()}))
    for one in {*NAMES, *(word + "s" for word in named)} - {*named}:
        yield Refusal(f"{one}=", lambda to, one=one: update(to, plain, **usual, **{one: rows + 1}), True)


def strangers(family: Family, kind: str) -> Iterator[tuple[str, Any, bool]]:
    """Sketches to merge with, of other families, columns and parameters, with whether that can't be."""
    for other, its in CASES:
        if other.single is not family.single:
            yield f"{other} of {its}", other.feed(other.new(its), fresh(its, 2, 30)), True
        elif its != kind:
            yield f"one of {its}", other.feed(other.new(its), fresh(its, 2, 30)), False
    for name, value in ANOTHER.items():
        params = family._params(kind, 1, None)
        if name != "kind" and name in inspect.signature(family.single).parameters:
            made = family.single(**{**params, name: value})
            yield f"one of another {name}", family.feed(made, fresh(kind, 2, 30)), False


def merges(family: Family, kind: str) -> Iterator[Refusal]:
    """Everything to try with methods that take another sketch."""
    methods = [one for one in ("merge", "intersect", "subtract") if hasattr(family.single, one)]
    others = [*strangers(family, kind), ("None", None, True), ("bytes", b"", True)]
    for method, (name, other, certain) in itertools.product(methods, others):
        yield Refusal(f"{method}: {name}", lambda to, m=method, o=other: getattr(to, m)(o), certain)


def broken(family: Family, kind: str) -> Iterator[tuple[str, Any, bool]]:
    """Bytes that are no image, or not of this family, with whether that is certain."""
    image = bytes(family.feed(family.new(kind), fresh(kind, 3, 40)))
    yield "no bytes", b"", True
    yield "other bytes", b"nonsense" * 9, True
    yield "half an image", image[: len(image) // 2], True
    yield "one byte less", image[:-1], False
    for at in range(min(len(image), 64)):
        changed = bytearray(image)
        changed[at] ^= 0xFF
        yield f"byte {at} changed", bytes(changed), False
    for name, other, _ in strangers(family, kind):
        yield name, bytes(other), False


def groups_merges(family: Family, kind: str) -> Iterator[Refusal]:
    """Columns of images, all but the last in order."""
    fine = [bytes(family.feed(family.new(kind, seed), fresh(kind, seed, 40))) for seed in (4, 5, 6)]
    for name, image, certain in broken(family, kind):
        column = pa.array([*fine, image], pa.binary())
        yield Refusal(f"merge: {name}", lambda to, c=column: to.merge(np.array([0, 1, 2, 0]), c), certain)
    column = pa.array(fine, pa.binary())
    for name, wrong in (("texts", ["a", "b", "c"]), ("longs", [1, 2, 3]), ("two of three", column[:2])):
        yield Refusal(f"merge: {name}", lambda to, w=wrong: to.merge(np.arange(3), w), True)
    for name, numbers in NUMBERS.items():
        if len(numbers) == ROWS:
            given = numbers[1:]
            yield Refusal(f"merge to {name}", lambda to, g=given: to.merge(g, column), True)


NUMBERS: dict[str, Any] = {
    "a group too many": np.array([0, 1, 2, 3]),
    "a negative group": np.array([0, 1, 2, -1]),
    "a group far off": np.array([0, 1, 2, 2**40]),
    "halves": np.array([0.0, 1.0, 2.0, 0.5]),
    "texts": np.array(["0", "1", "2", "0"]),
    "a masked group": np.ma.MaskedArray([0, 1, 2, 0], [0, 0, 0, 1]),
    "too few": np.array([0, 1, 2]),
    "none": np.array([], np.int64),
}


def group_numbers(family: Family, kind: str) -> Iterator[Refusal]:
    """Rows; the last belongs to no group."""
    plain, usual = fresh(kind, 1, ROWS), family.inputs(np.arange(ROWS))
    for name, numbers in NUMBERS.items():
        yield Refusal(f"groups: {name}", lambda to, n=numbers: to.update(n, plain, **usual), True)
