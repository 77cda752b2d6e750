"""The forms in which the same values come, in one table, each beside the plain column it stands for."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

NAN = float("nan")
LONGS = [3, 1, 250, 3, 17, 0, 8]
DOUBLES = [0.5, -0.0, 2.25, 0.5, 1e300, -7.75, 3.0]
TEXTS = ["pear", "fig", "", "pear", "日本語", "a much longer text than fits a view", "x"]
BYTES = [text.encode() for text in TEXTS]
DAYS = [date(2026, 7, day) for day in (1, 2, 1, 9)] + [date(1969, 12, 31)]
MOMENTS = [datetime(day.year, day.month, day.day) for day in DAYS]


@dataclass(frozen=True)
class Form:
    """`make` gives the values of `plain` again in another form; `kind` says which families take them."""

    name: str
    kind: str
    make: Callable[[], Any]
    plain: pa.Array

    def __str__(self) -> str:
        return f"{self.kind}-{self.name}"


def gaps(values: list[Any], kind: pa.DataType | None = None) -> pa.Array:
    """The values with two of them missing."""
    return pa.array([None if i in (1, 4) else value for i, value in enumerate(values)], kind)


def _masked(array: np.ndarray) -> Any:
    return np.ma.MaskedArray(array, [i in (1, 4) for i in range(len(array))])


def _runs(values: list[Any], kind: pa.DataType) -> pa.Array:
    ends = pa.array(np.arange(2, len(values) + 2), pa.int32())
    return pa.RunEndEncodedArray.from_arrays(ends, pa.array(values, kind)).slice(1)


def _sliced(array: pa.Array) -> pa.Array:
    return pa.concat_arrays([array, array]).slice(len(array))


def _each(values: list[Any]) -> Iterator[Any]:
    yield from values


def _forms() -> list[Form]:
    longs, doubles, texts = pa.array(LONGS), pa.array(DOUBLES), pa.array(TEXTS)
    table: dict[str, tuple[pa.Array, dict[str, Callable[[], Any]]]] = {
        "long": (
            longs,
            {
                "list": lambda: LONGS,
                "tuple": lambda: tuple(LONGS),
                "generator": lambda: _each(LONGS),
                "NumPy": lambda: np.array(LONGS),
                "NumPy big-endian": lambda: np.array(LONGS, ">i4"),
                "NumPy big-endian unsigned": lambda: np.array(LONGS, ">u4"),
                "NumPy objects": lambda: np.array(LONGS, object),
                "NumPy read-only and not contiguous": lambda: np.frombuffer(
                    np.repeat(np.array(LONGS, np.int16), 2).tobytes(), np.int16
                )[::2],
                "list of NumPy scalars": lambda: [np.uint8(value) for value in LONGS],
                "Arrow sliced": lambda: _sliced(longs),
                "Arrow chunked": lambda: pa.chunked_array([longs[:2], longs[:0], longs[2:]]),
                "Arrow dictionary": lambda: _sliced(longs).dictionary_encode(),
                "Arrow runs": lambda: _runs(LONGS, pa.int16()),
                "Arrow extension": lambda: pa.array(LONGS, pa.int64()),
                "pandas": lambda: pd.Series(LONGS, index=range(5, 12)),
                "pandas Int64": lambda: pd.Series(LONGS, dtype="Int64"),
                "pandas Arrow": lambda: pd.Series(LONGS, dtype="uint16[pyarrow]"),
                "pandas category": lambda: pd.Series(LONGS, dtype="category"),
                "pandas index": lambda: pd.Index(LONGS),
                "Polars": lambda: pl.Series(LONGS, dtype=pl.UInt32),
                "lists": lambda: pa.array([[value] for value in LONGS], pa.list_view(pa.int64())),
                "Polars arrays": lambda: pl.Series([[value] for value in LONGS], dtype=pl.Array(pl.Int64, 1)),
            },
        ),
        "long with gaps": (
            gaps(LONGS),
            {
                "list": lambda: gaps(LONGS).to_pylist(),
                "NumPy mask": lambda: _masked(np.array(LONGS)),
                "NumPy mask big-endian": lambda: _masked(np.array(LONGS, ">i8")),
                "NumPy mask of objects": lambda: _masked(np.array(LONGS, object)),
                "NA": lambda: [pd.NA if value is None else value for value in gaps(LONGS).to_pylist()],
                "pandas Int64": lambda: pd.Series(gaps(LONGS).to_pylist(), dtype="Int64"),
                "Polars": lambda: pl.Series(gaps(LONGS).to_pylist()),
                "Arrow runs": lambda: _runs(gaps(LONGS).to_pylist(), pa.int64()),
                "Arrow dictionary": lambda: gaps(LONGS).dictionary_encode(),
            },
        ),
        "double": (
            doubles,
            {
                "list": lambda: DOUBLES,
                "generator": lambda: _each(DOUBLES),
                "NumPy big-endian": lambda: np.array(DOUBLES, ">f8"),
                "NumPy long double": lambda: np.array(DOUBLES, np.longdouble),
                "Arrow chunked": lambda: pa.chunked_array([doubles[:3], doubles[3:]]),
                "pandas": lambda: pd.Series(DOUBLES),
                "pandas Float64": lambda: pd.Series(DOUBLES, dtype="Float64"),
                "pandas sparse": lambda: pd.Series(pd.arrays.SparseArray(DOUBLES)),
                "Polars": lambda: pl.Series(DOUBLES),
            },
        ),
        "half": (
            pa.array([0.5, 2.25, -8.0]),
            {
                "NumPy": lambda: np.array([0.5, 2.25, -8.0], np.float16),
                "Arrow": lambda: pa.array(np.array([0.5, 2.25, -8.0], np.float16)),
                "float32": lambda: np.array([0.5, 2.25, -8.0], ">f4"),
            },
        ),
        "NaN": (
            pa.array([1.5, NAN, None, NAN, 2.0]),
            {
                "list": lambda: [1.5, NAN, None, NAN, 2.0],
                "list with NA": lambda: [1.5, NAN, pd.NA, np.float32("nan"), 2],
                "NumPy mask": lambda: np.ma.MaskedArray([1.5, NAN, 9.0, NAN, 2.0], [0, 0, 1, 0, 0]),
                "NumPy objects": lambda: np.array([1.5, NAN, None, NAN, 2.0], object),
                "pandas objects": lambda: pd.Series([1.5, NAN, None, NAN, 2.0], dtype=object),
                "Polars": lambda: pl.Series([1.5, NAN, None, NAN, 2.0]),
            },
        ),
        "NaN without gaps": (
            pa.array([1.5, NAN, 2.0]),
            {
                "NumPy": lambda: np.array([1.5, NAN, 2.0]),
                "pandas": lambda: pd.Series([1.5, NAN, 2.0]),
                "pandas float32": lambda: pd.Series([1.5, NAN, 2.0], dtype="float32"),
                "integers and NaN": lambda: [1.5, NAN, 2],
            },
        ),
        "string": (
            texts,
            {
                "list": lambda: TEXTS,
                "generator": lambda: _each(TEXTS),
                "NumPy": lambda: np.array(TEXTS),
                "NumPy big-endian": lambda: np.array(TEXTS, np.array(TEXTS).dtype.newbyteorder(">")),
                "NumPy StringDType": lambda: np.array(TEXTS, np.dtypes.StringDType()),
                "Arrow large": lambda: texts.cast(pa.large_string()),
                "Arrow view": lambda: _sliced(texts.cast(pa.string_view()).cast(pa.string())).cast(
                    pa.string_view()
                ),
                "Arrow dictionary of views": lambda: pa.DictionaryArray.from_arrays(
                    pa.array(range(7), pa.uint8()), texts.cast(pa.string_view())
                ),
                "Arrow runs of views": lambda: _runs(TEXTS, pa.string_view()),
                "pandas": lambda: pd.Series(TEXTS),
                "pandas string": lambda: pd.Series(TEXTS, dtype="string"),
                "pandas Arrow string": lambda: pd.Series(TEXTS, dtype="string[pyarrow]"),
                "pandas category": lambda: pd.Series(TEXTS, dtype="category"),
                "Polars": lambda: pl.Series(TEXTS),
                "Polars objects": lambda: pl.Series(TEXTS, dtype=pl.Object),
                "Polars Categorical": lambda: pl.Series(TEXTS, dtype=pl.Categorical),
                "Polars Enum": lambda: pl.Series(TEXTS, dtype=pl.Enum(sorted(set(TEXTS)))),
                "Polars lists of Categorical": lambda: pl.Series([[text] for text in TEXTS]).cast(
                    pl.List(pl.Categorical)
                ),
            },
        ),
        "string with gaps": (
            gaps(TEXTS),
            {
                "list with NaN": lambda: [NAN if v is None else v for v in gaps(TEXTS).to_pylist()],
                "list with NaT": lambda: [pd.NaT if v is None else v for v in gaps(TEXTS).to_pylist()],
                "pandas": lambda: pd.Series(gaps(TEXTS).to_pylist()),
                "pandas with NaN": lambda: pd.Series(
                    [v or NAN if v is None else v for v in gaps(TEXTS).to_pylist()]
                ),
                "NumPy mask": lambda: _masked(np.array(TEXTS)),
                "Polars Categorical": lambda: pl.Series(gaps(TEXTS).to_pylist(), dtype=pl.Categorical),
            },
        ),
        "binary": (
            pa.array(BYTES),
            {
                "list": lambda: BYTES,
                "bytearrays": lambda: [bytearray(value) for value in BYTES],
                "memoryviews": lambda: [memoryview(value) for value in BYTES],
                "Arrow large": lambda: pa.array(BYTES, pa.large_binary()),
                "Arrow view": lambda: pa.array(BYTES, pa.binary_view()),
                "Polars": lambda: pl.Series(BYTES),
            },
        ),
        "binary of one size": (
            pa.array([b"ab", b"cd", b"ab"]),
            {
                "Arrow": lambda: pa.array([b"ab", b"cd", b"ab"], pa.binary(2)),
                "NumPy": lambda: np.array([b"ab", b"cd", b"ab"]),
            },
        ),
        "boolean": (
            pa.array([True, None, False, True]),
            {
                "list with NaN": lambda: [True, NAN, False, True],
                "NumPy mask": lambda: np.ma.MaskedArray([True, True, False, True], [0, 1, 0, 0]),
                "pandas": lambda: pd.Series([True, None, False, True], dtype="boolean"),
                "pandas objects": lambda: pd.Series([True, NAN, False, True]),
                "Polars": lambda: pl.Series([True, None, False, True]),
            },
        ),
        "nothing": (
            pa.nulls(3),
            {
                "list": lambda: [None, None, None],
                "Polars": lambda: pl.Series([None, None, None]),
                "pandas": lambda: pd.Series([pd.NA, None, pd.NaT], dtype=object),
                "NumPy mask": lambda: np.ma.masked_all(3, np.int64),
            },
        ),
        "no rows": (
            pa.nulls(0),
            {
                "list": list,
                "generator": lambda: _each([]),
                "NumPy": lambda: np.empty(0),
                "NumPy big-endian": lambda: np.empty(0, ">i8"),
                "Arrow chunked": lambda: pa.chunked_array([], pa.int64()),
                "Arrow dictionary": lambda: pa.array([], pa.dictionary(pa.int8(), pa.int64())),
                "pandas": lambda: pd.Series([], dtype=float),
                "Polars": lambda: pl.Series([], dtype=pl.Int8),
            },
        ),
        "instant": (
            pa.array(MOMENTS, pa.timestamp("us")),
            {
                "datetimes": lambda: MOMENTS,
                "Arrow seconds": lambda: pa.array(MOMENTS, pa.timestamp("s")),
                "Arrow milliseconds": lambda: pa.array(MOMENTS, pa.timestamp("ms")),
                "Arrow nanoseconds": lambda: pc.add(
                    pa.array(MOMENTS, pa.timestamp("ns")), pa.scalar(999, pa.duration("ns"))
                ),
                "NumPy minutes": lambda: np.array(MOMENTS, "M8[m]"),
                "NumPy big-endian seconds": lambda: np.array(MOMENTS, ">M8[s]"),
                "NumPy nanoseconds": lambda: np.array(MOMENTS, "M8[ns]"),
                "pandas": lambda: pd.Series(MOMENTS),
                "pandas timestamps": lambda: [pd.Timestamp(moment) for moment in MOMENTS],
                "pandas index": lambda: pd.DatetimeIndex(MOMENTS),
                "Polars": lambda: pl.Series(MOMENTS, dtype=pl.Datetime("ms")),
            },
        ),
        "instant in a zone or as a day": (
            pa.array(MOMENTS, pa.timestamp("us")),
            {
                "datetimes of UTC": lambda: [moment.replace(tzinfo=UTC) for moment in MOMENTS],
                "datetimes elsewhere": lambda: [
                    moment.replace(tzinfo=UTC).astimezone(timezone(timedelta(hours=-7))) for moment in MOMENTS
                ],
                "pandas": lambda: pd.Series(MOMENTS).dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"),
                "Polars": lambda: pl.Series(MOMENTS).dt.replace_time_zone("UTC"),
                "dates": lambda: DAYS,
                "dates and times": lambda: [DAYS[0], *MOMENTS[1:4], DAYS[4]],
                "NumPy days": lambda: np.array(DAYS, "M8[D]"),
                "list of NumPy days": lambda: list(np.array(DAYS, "M8[D]")),
                "list of NumPy units": lambda: [np.datetime64(DAYS[0]), *np.array(MOMENTS[1:], "M8[ms]")],
                "Arrow date64": lambda: pa.array(DAYS, pa.date64()),
                "Polars dates": lambda: pl.Series(DAYS),
            },
        ),
        "instant with gaps": (
            gaps(MOMENTS, pa.timestamp("us")),
            {
                "list of NumPy NaT": lambda: list(
                    gaps(MOMENTS, pa.timestamp("s")).to_numpy(zero_copy_only=False)
                ),
                "NumPy NaT": lambda: gaps(MOMENTS, pa.timestamp("s")).to_numpy(zero_copy_only=False),
                "pandas": lambda: pd.Series(gaps(MOMENTS).to_pylist()),
                "NaT": lambda: [pd.NaT if moment is None else moment for moment in gaps(MOMENTS).to_pylist()],
                "NaN": lambda: [NAN if moment is None else moment for moment in gaps(MOMENTS).to_pylist()],
                "NumPy mask": lambda: _masked(np.array(MOMENTS, "M8[ms]")),
            },
        ),
        "decimal": (
            pa.array([1.5, 2.25, -7.0]),
            {
                "list": lambda: [decimal.Decimal(text) for text in ("1.5", "2.25", "-7")],
                "Arrow": lambda: pa.array([1.5, 2.25, -7.0]).cast(pa.decimal128(20, 4)),
                "Polars": lambda: pl.Series(["1.5", "2.25", "-7"]).cast(pl.Decimal(20, 3)),
            },
        ),
    }
    return [
        Form(name, kind, make, plain)
        for kind, (plain, forms) in table.items()
        for name, make in forms.items()
    ]


FORMS = _forms()

SCALARS: list[tuple[Any, Any]] = [
    (7, [7]),
    (np.int16(7), [7]),
    (np.array(7), [7]),
    (True, [True]),
    (2.5, [2.5]),
    (np.float32(2.5), [2.5]),
    (pa.scalar(7, pa.uint8()), [7]),
    ("pear", ["pear"]),
    (np.str_("pear"), ["pear"]),
    (pa.scalar("pear", pa.string_view()), ["pear"]),
    (b"pear", [b"pear"]),
    (bytearray(b"pear"), [b"pear"]),
    (memoryview(b"pear"), [b"pear"]),
    (MOMENTS[0], [MOMENTS[0]]),
    (pd.Timestamp(MOMENTS[0]), [MOMENTS[0]]),
    (np.datetime64(MOMENTS[0], "ns"), [MOMENTS[0]]),
    (timedelta(seconds=3), [timedelta(seconds=3)]),
    (decimal.Decimal("2.5"), [decimal.Decimal("2.5")]),
    (None, [None]),
    (pd.NA, [None]),
    (pd.NaT, [None]),
    (np.ma.masked, [None]),
]
"""Scalars, each beside the column of one that it stands for."""
