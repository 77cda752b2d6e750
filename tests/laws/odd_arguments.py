"""Odd arguments for every public parameter: what each means in plain Python, or that it means nothing.

A parameter has the same name in all families, so one table has them all. `REFUSED` stands for what must be
refused, `EITHER` for what some families take and others don't.
"""

from __future__ import annotations

import array
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

REFUSED, EITHER = object(), object()
Odd = tuple[Any, Any]
"""An argument (a function makes those that can be read only once), and what it means."""

NOTHING: tuple[Any, ...] = (
    None,
    float("nan"),
    "two",
    b"two",
    {},
    {"a": 1},
    object(),
    1j,
    int,
    date(2026, 1, 1),
)
"""What is no number, whatever number is wanted."""


def refused(*values: Any) -> list[Odd]:
    return [(value, REFUSED) for value in values]


def forms_of(number: Any) -> list[Odd]:
    """A number in other types, and what looks like one and isn't."""
    numpy = np.int64 if isinstance(number, int) else np.float64
    same = [numpy(number), np.array(number), pa.scalar(number)]
    columns = [
        [number],
        (number,),
        np.array([number]),
        pa.array([number]),
        pl.Series([number]),
        [],
        [[number]],
    ]
    return [*((one, number) for one in same), *refused(*NOTHING, str(number), True, np.True_, *columns)]


def whole(number: int, *beyond: Any) -> list[Odd]:
    return [*forms_of(number), *refused(float(number), np.float64(number), number + 0.5, 10**30, *beyond)]


def columns_of(numbers: list[Any], bools: bool = False) -> list[Odd]:
    """A list of numbers in everything that holds one; `bools` says whether True is 1."""
    first = numbers[0]
    floats = [float(number) for number in numbers]
    same: list[Any] = [
        tuple(numbers),
        np.array(floats),
        np.array(floats, ">f8"),
        np.repeat(floats, 2)[::2],
        np.array(numbers, object),
        pa.array(floats),
        pa.chunked_array([floats[:1], floats[1:]]),
        pa.array(floats).dictionary_encode(),
        pl.Series(floats),
        pd.Series(floats, index=range(7, 7 + len(floats))),
        pd.Series(floats, dtype="Float64"),
        array.array("d", floats),
        memoryview(array.array("d", floats)),
        lambda: (number for number in numbers),
        lambda: map(float, numbers),
        [np.float64(number) for number in numbers],
        [Decimal(str(number)) for number in numbers],
        [pa.scalar(number) for number in floats],
        [np.array(number) for number in floats],
    ]
    single: list[Any] = [first, np.float64(first), np.array(first), pa.scalar(first), Decimal(str(first))]
    empty: list[Any] = [(), np.array([]), np.array([], object), pa.array([], pa.float64()), pl.Series([])]
    return [
        *((one, numbers) for one in same),
        *((one, [first]) for one in single),
        *((one, []) for one in empty),
        *refused(*NOTHING, [None], [first, None], pa.array([first, None]), pl.Series([first, None])),
        *refused([float("nan")], ["0.5"], [b"0.5"], [object()], [[first]], np.array([[first]]), "0.5", [1j]),
        *refused([datetime(2026, 1, 1)], pd.Series([first, None]), np.ma.MaskedArray([first, 0.9], [0, 1])),
        *((one, [1.0] if bools else REFUSED) for one in ([True], True, np.True_)),
        *refused([first, "a"], {"a": first}),
    ]


LATER = datetime(2026, 8, 1, tzinfo=UTC)
MICROS = int(LATER.timestamp()) * 1_000_000
WINDOW = timedelta(seconds=100)

TABLE: dict[str, list[Odd]] = {
    "qs": [*columns_of([0.25, 0.5]), (range(2), [0, 1]), *refused([1.5], [-0.1], 2, [0.5, float("inf")])],
    "q": [*forms_of(0.5), (0, 0.0), (1, 1.0), (Decimal("0.5"), 0.5), *refused(1.5, -0.1, 10**400)],
    "x": [
        *(one for number in (8.5, 8) for one in forms_of(number) if not isinstance(one[0], (bool, np.bool_))),
        *((one, 1) for one in (True, np.True_)),
        *((one, 8.5) for one in (np.float32(8.5), Decimal("8.5"), Fraction(17, 2))),
        (float("inf"), 1e308),
        (-(10**400), -1e308),
    ],
    "points": [
        *columns_of([7.25, 8.5], bools=True),
        *refused([8.0, 7.0], [7.0, 7.0]),
        (range(7, 9), [7, 8]),
    ],
    "k": whole(2, -1),
    "threshold": [
        *((odd, 1 if mean == 2 else mean) for odd, mean in forms_of(1) if odd is not None),
        (1.0, 1),
    ],
    "no_false": refused("neither", "", None, 3, True, ["positives"], b"positives"),
    "target": refused("hll_6", "", None, 3, True, ["hll_8"], b"hll_8"),
    "belongs": refused(None, 3, "a", [True]),
    "confidence": [*forms_of(0.9), *refused(0.0, 1.0, -1, 2, 10**400)],
    "std_devs": whole(2, 0, 4, -1),
    "pmf": [(np.True_, True), *refused(None, 0, 1.0, "yes", [True])],
    "conservative": [(np.True_, True), *refused(None, 0, 1.0, "yes", [True])],
    "seed": [*(one for one in whole(7) if one[0] is not None)],
    "lg_k": [*((odd, mean) for odd, mean in whole(9, 3, 40) if odd is not None)],
    "kind": refused("longs", "", 3, True, ["long"], b"long"),
    "type": refused("no such", "", 3, True, ["double"], b"double", object()),
    "mode": refused("totals", "", 3, True, ["sum"], b"sum"),
    "window": [
        (np.timedelta64(100, "s"), WINDOW),
        (pd.Timedelta(WINDOW), WINDOW),
        *((100.0 if mean == 100 else odd, mean) for odd, mean in forms_of(100) if odd is not None),
        *refused(-1, 0, float("inf"), "100s", np.timedelta64("NaT"), np.timedelta64(1, "M"), 10**400),
    ],
    "now": [
        (LATER.replace(tzinfo=None), LATER),
        (np.datetime64(MICROS, "us"), LATER),
        (pd.Timestamp(LATER), LATER),
        (pa.scalar(LATER), LATER),
        (np.int64(MICROS), LATER),
        (np.array(MICROS), LATER),
        (pa.scalar(MICROS), LATER),
        *refused(*NOTHING[1:-1], "2026-08-01", [LATER], [MICROS], [], float(MICROS), True, 10**30, pd.NaT),
        *refused(np.datetime64("NaT"), pa.scalar(None, pa.int64()), [LATER, LATER], timedelta(1), [None]),
    ],
    "n": whole(5, -1, 2**62),
    "group": [*whole(1, 99, -99, 2**62), *refused(slice(1), Ellipsis, np.s_[0, 1]), (np.uint8(1), 1)],
    "data": refused(
        *NOTHING[:1], "text", 5, [1, 2], object(), 1.5, b"", np.arange(3.0), pa.array([b"a"]), [b"a"]
    ),
    "other": refused(*NOTHING, 5, [], True),
}


def bytes_like(image: bytes) -> list[Odd]:
    """An image in everything that holds bytes."""
    padded = memoryview(b"x" + b"".join(bytes([byte, 0]) for byte in image))[1::2]
    same: list[Any] = [
        bytearray(image),
        memoryview(image),
        np.frombuffer(image, np.uint8),
        pa.py_buffer(image),
    ]
    return [(one, image) for one in (*same, padded, pa.scalar(image), np.bytes_(image + b"\1")[: len(image)])]


ROWS = 3


def rows_of(numbers: list[int]) -> list[Odd]:
    """Group numbers, one a row or one for all rows."""
    return [
        *(
            (one, numbers)
            for one in (tuple(numbers), pa.array(numbers), pl.Series(numbers), pd.Series(numbers))
        ),
        *((np.array(numbers, kind), numbers) for kind in (">i4", np.uint8, np.uint64, object)),
        (pa.chunked_array([numbers[:1], numbers[1:]]), numbers),
        (pd.Series(numbers, dtype="Int64"), numbers),
        (array.array("i", numbers), numbers),
        (lambda: (number for number in numbers), numbers),
        *((one, [1] * ROWS) for one in (1, np.int64(1), np.array(1), pa.scalar(1), np.uint8(1))),
        *refused(
            *NOTHING, [None] * ROWS, [0, None, 1], [0.0, 1.0, 0.0], [True] * ROWS, ["0"] * ROWS, [[0]] * ROWS
        ),
        *refused(
            [0], [0, 1], [0] * 4, [], [0, 1, 99], [-1, 0, 0], 99, -1, [2**64 - 1] * ROWS, [10**30] * ROWS
        ),
        *refused(np.array([2**64 - 1] * ROWS, np.uint64), np.zeros((ROWS, 1), int), True, 1.0, [0, [1], 0]),
        *refused(np.ma.MaskedArray([0, 1, 0], [0, 1, 0]), np.zeros(ROWS, "M8[s]"), [object()] * ROWS),
    ]


def inputs_of(name: str) -> list[Odd]:
    """A row-wise input: of three rows, or one for all."""
    if name == "time":
        micros = [MICROS, MICROS + 1, MICROS + 2]
        times = [datetime.fromtimestamp(one / 1e6, UTC) for one in micros]
        numpy = np.array(micros).astype("M8[us]")
        same = [
            tuple(micros),
            np.array(micros),
            pa.array(micros),
            times,
            numpy,
            pa.array(times),
            pl.Series(times),
        ]
        same += [pd.Series(times), pd.DatetimeIndex(times), list(numpy), [np.int64(one) for one in micros]]
        single = [
            MICROS,
            np.int64(MICROS),
            np.array(MICROS),
            pa.scalar(MICROS),
            times[0],
            pd.Timestamp(times[0]),
        ]
        wrong = [
            [1.5] * ROWS,
            ["2026"] * ROWS,
            "2026-08-01",
            [True] * ROWS,
            [10**30] * ROWS,
            [timedelta(1)] * ROWS,
        ]
        wrong += [
            [[MICROS]] * ROWS,
            1.5,
            True,
            [MICROS],
            [MICROS] * 4,
            [],
            [MICROS, "a", 1],
            [datetime.max] * 2,
        ]
        return [
            *((one, micros) for one in same),
            *((one, [micros[0]] * ROWS) for one in single),
            *refused(*NOTHING[2:-1], *wrong),
        ]
    if name in ("partition", "offset"):
        same = [
            (2, 3, 4),
            np.array([2, 3, 4]),
            pa.array([2, 3, 4]),
            pl.Series([2, 3, 4]),
            array.array("i", [2, 3, 4]),
        ]
        wrong = [
            "two",
            {},
            object(),
            1j,
            2.5,
            [2],
            [2] * 4,
            [],
            ["2"] * ROWS,
            [[2]] * ROWS,
            [10**30] * ROWS,
            True,
        ]
        return [*((one, [2, 3, 4]) for one in same), *refused(*wrong)]
    if name == "key":
        return [(("a", "b", "a"), ["a", "b", "a"]), ("a", ["a"] * ROWS), *((one, EITHER) for one in NOTHING)]
    same = [(2, 3, 4), np.array([2, 3, 4]), np.array([2.0, 3, 4]), pa.array([2, 3, 4]), pl.Series([2, 3, 4])]
    same += [pd.Series([2, 3, 4]), pd.Series([2, 3, 4], dtype="Int64"), array.array("i", [2, 3, 4])]
    same += [[Decimal(2), Decimal(3), Decimal(4)]]
    single = [2, np.uint8(2), np.array(2), pa.scalar(2), 2.0, Decimal(2)]
    wrong = ["two", b"two", {}, object(), 1j, date(2026, 1, 1), ["2"] * ROWS, [[2]] * ROWS, [2], [2] * 4, []]
    wrong += [-1, [2, "a", 3], [object()] * ROWS, [timedelta(2)] * ROWS, float("inf"), [10**30] * ROWS]
    if name == "value":
        wrong = [
            one for one in wrong if repr(one) not in ("-1", "inf", repr([10**30] * ROWS), repr([[2]] * ROWS))
        ]
    return [
        *((one, same_or_refused([2, 3, 4])) for one in same),
        *((one, same_or_refused([2, 2, 2])) for one in single),
        *refused(*wrong),
        *((one, EITHER) for one in (True, [True] * ROWS, None, float("nan"), [None] * ROWS, [2, None, 4])),
    ]


class Maybe:
    """What an argument means where it is taken: counting families take no floats for weights."""

    def __init__(self, meaning: Any) -> None:
        self.meaning = meaning


def same_or_refused(meaning: Any) -> Maybe:
    return Maybe(meaning)


def values_like(values: list[Any]) -> list[Odd]:
    """Columns that equal the values, and others of which families take some."""
    same: list[Any] = [
        tuple(values),
        np.array(values),
        np.array(values, object),
        pa.array(values),
        pa.chunked_array([values[:1], values[1:]]),
        pa.array(values).dictionary_encode(),
        pl.Series(values),
        pd.Series(values, index=[9, 8, 7]),
        pd.Series(values, dtype="category"),
        dict.fromkeys(values).keys(),
        lambda: (value for value in values),
        [np.array(value)[()] for value in values],
    ]
    odd: list[Any] = [
        *NOTHING,
        "\ud800",
        ["\ud800"] * ROWS,
        2**70,
        [2**70] * ROWS,
        -(2**70),
        [None] * ROWS,
        "",
    ]
    odd += [
        True,
        [object()] * ROWS,
        [[1], [2], 3],
        np.ones((ROWS, 2)),
        np.zeros(ROWS, complex),
        [1, "a", 2.5],
    ]
    odd += [
        pd.IntervalIndex.from_breaks(range(4)),
        pd.period_range("2026-01", periods=3),
        np.zeros(ROWS, "V2"),
    ]
    odd += [
        pl.Series([1, 2, 3], dtype=pl.Int128),
        pl.col("a"),
        pl.LazyFrame({"a": [1]}),
        [Decimal("inf")] * ROWS,
    ]
    odd += [pa.array([(1, 2, 3)] * ROWS, pa.month_day_nano_interval()), float("inf"), [timedelta(1)] * ROWS]
    odd += [
        [datetime.max] * ROWS,
        [date.min] * ROWS,
        np.array(["NaT"] * ROWS, "M8[s]"),
        pd.NaT,
        pd.NA,
        np.ma.masked,
    ]
    odd += [
        [],
        (),
        np.array([]),
        pa.array([]),
        pl.Series([]),
        pa.array([[1, 2], None, [3]]),
        [Fraction(1, 2)] * ROWS,
    ]
    odd += [
        [Decimal("1.5")] * ROWS,
        [Decimal(10) ** 60] * ROWS,
        [-0.0] * ROWS,
        np.array([2**64 - 1] * ROWS, np.uint64),
    ]
    return [*((one, values) for one in same), *((one, EITHER) for one in odd)]


def item_like(item: Any) -> list[Odd]:
    """One value to look up in everything that holds it, and what can't be one."""
    same: list[Any] = [
        np.array(item),
        np.array([item])[0],
        pa.scalar(item),
        [item],
        np.array([item]),
        pl.Series([item]),
    ]
    same += [(item,), lambda: (one for one in [item]), pa.array([item])]
    return [
        *((one, item) for one in same),
        *refused(
            [item, item], [], pa.array([item, item]), object(), [object()], {"a": 1}, 1j, 2**70, "\ud800", int
        ),
        *(
            (one, EITHER)
            for one in (None, float("nan"), "two", b"two", True, date(2026, 1, 1), 1.5, [None], "")
        ),
    ]


def columns_of_images(images: list[bytes]) -> list[Odd]:
    """Columns of serialised sketches to merge."""
    same: list[Any] = [
        tuple(images),
        pa.array(images),
        pa.array(images, pa.large_binary()),
        pl.Series(images),
    ]
    same += [
        pa.chunked_array([images[:1], images[1:]]),
        pa.array(images).dictionary_encode(),
        pd.Series(images),
    ]
    same += [
        np.array(images, object),
        [bytearray(image) for image in images],
        lambda: (image for image in images),
    ]
    wrong = [
        *NOTHING[1:],
        5,
        "text",
        ["text"] * ROWS,
        [1] * ROWS,
        [b""] * ROWS,
        images[:2],
        images * 2,
        [1.5] * ROWS,
    ]
    wrong += [
        [object()] * ROWS,
        [True] * ROWS,
        [b"nonsense" * 9] * ROWS,
        [*images[:2], b"x"],
    ]
    return [*((one, images) for one in same), *refused(*wrong)]


def made(odd: Any) -> Any:
    """The argument itself, where a function makes it."""
    return odd() if isinstance(odd, Callable) and not isinstance(odd, type) else odd  # type: ignore[arg-type]


def each_of(table: list[Odd]) -> Iterator[tuple[Any, Any, str]]:
    """Each argument, its meaning, and how it is shown."""
    for odd, meaning in table:
        given = made(odd)
        shown = " ".join(repr(given).split())
        yield given, meaning, f"{type(given).__module__}.{type(given).__name__} {shown[:70]}"
