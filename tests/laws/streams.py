"""Streams that break summaries, by name: one table, each stream in every kind of column it makes sense in."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa

ROWS = 2000
TYPES = {"long": pa.int64(), "double": pa.float64(), "string": pa.string(), "unsigned": pa.uint64()}
"""The kinds of column, each with its plain type."""
_rng = np.random.default_rng(20260701)
_numbers = _rng.integers(-1000, 1000, ROWS)
_zipf = _rng.zipf(1.3, ROWS) % 500
_words = np.array(["", "a", "ä", "日本語", "🦆", "e\u0301", "\u0000", "A" * 300, "\U0010ffff", " a "])


def _text(numbers: Any) -> pa.Array:
    return pa.array([f"word {number}" for number in numbers])


def _sliced(array: pa.Array) -> pa.Array:
    padded = pa.concat_arrays([array.slice(0, 3), array, array.slice(0, 5)])
    return padded.slice(3, len(array))


def _chunked(array: pa.Array) -> pa.ChunkedArray:
    cuts = [0, 0, 1, 700, 700, 1999, ROWS]
    return pa.chunked_array([_sliced(array.slice(a, b - a)) for a, b in itertools.pairwise(cuts)])


def _holey(array: pa.Array) -> pa.Array:
    return pa.array(array.to_pylist(), array.type, mask=_rng.random(len(array)) < 0.3)


_LONGS, _DOUBLES = pa.array(_numbers), pa.array(_rng.standard_normal(ROWS))
_STRINGS = _text(_zipf)
_LIMITS = [-(2**63), -(2**63) + 1, -1, 0, 1, 2**63 - 2, 2**63 - 1, 2**31, -(2**31), 2**53 + 1]

STREAMS: dict[str, dict[str, Any]] = {
    "sorted": {
        "long": pa.array(np.arange(ROWS)),
        "double": pa.array(np.linspace(-5.0, 5.0, ROWS)),
        "string": _text(range(10_000, 10_000 + ROWS)),
    },
    "reversed": {
        "long": pa.array(np.arange(ROWS)[::-1]),
        "double": pa.array(np.linspace(-5.0, 5.0, ROWS)[::-1]),
        "string": _text(range(10_000 + ROWS, 10_000, -1)),
    },
    "constant": {
        "long": pa.array(np.full(ROWS, 7)),
        "double": pa.array(np.full(ROWS, 0.1)),
        "string": pa.array(["same"] * ROWS),
    },
    "two values": {
        "long": pa.array(np.arange(ROWS) % 2),
        "double": pa.array(np.arange(ROWS) % 2 * 1e-9),
        "string": pa.array(["yes", "no"] * (ROWS // 2)),
    },
    "Zipf": {"long": pa.array(_zipf), "double": pa.array(_zipf / 7), "string": _STRINGS},
    "heavy duplicates": {
        "long": pa.array(np.repeat(np.arange(20), ROWS // 20)),
        "double": pa.array(np.repeat(np.arange(20) / 3, ROWS // 20)),
        "string": _text(np.repeat(np.arange(20), ROWS // 20)),
    },
    "alternating extremes": {
        "long": pa.array([(-1) ** i * (2**62 - i) for i in range(ROWS)]),
        "double": pa.array([(-1) ** i * 1.7e308 / (i + 1) for i in range(ROWS)]),
    },
    "lognormal": {"double": pa.array(_rng.lognormal(0, 4, ROWS))},
    "NaN": {"double": pa.array(np.where(_rng.random(ROWS) < 0.3, np.nan, _DOUBLES.to_numpy()))},
    "infinities": {"double": pa.array(np.tile([np.inf, -np.inf, 1.0, 2.0], ROWS // 4))},
    "negative zero": {"double": pa.array(np.tile([0.0, -0.0, 1.0, -1.0], ROWS // 4))},
    "smallest doubles": {"double": pa.array(np.tile([5e-324, -5e-324, 2.2e-308, 1e-310], ROWS // 4))},
    "empty strings": {"string": pa.array([["", "a", ""][i % 3] for i in range(ROWS)])},
    "unicode": {"string": pa.array(_words[_rng.integers(0, len(_words), ROWS)].tolist())},
    "long strings": {"string": pa.array(["x" * (i % 700) + str(i % 90) for i in range(ROWS)])},
    "int64 limits": {"long": pa.array(_LIMITS * (ROWS // len(_LIMITS)), pa.int64())},
    "unsigned above 2^63": {"unsigned": pa.array([2**64 - 1 - i % 50 for i in range(ROWS)], pa.uint64())},
    "unsigned and holey": {"unsigned": _holey(pa.array(_rng.integers(0, 2**64, ROWS, np.uint64)))},
    "narrow types": {
        "long": _LONGS.cast(pa.int16()),
        "double": pa.array(_DOUBLES.to_numpy().astype(np.float32)),
    },
    "nulls": {"long": _holey(_LONGS), "double": _holey(_DOUBLES), "string": _holey(_STRINGS)},
    "all null": {
        "long": pa.nulls(ROWS, pa.int64()),
        "double": pa.nulls(ROWS, pa.float64()),
        "string": pa.nulls(ROWS, pa.string()),
    },
    "sliced": {
        "long": _sliced(_holey(_LONGS)),
        "double": _sliced(_holey(_DOUBLES)),
        "string": _sliced(_holey(_STRINGS)),
    },
    "chunked": {"long": _chunked(_LONGS), "double": _chunked(_DOUBLES), "string": _chunked(_holey(_STRINGS))},
    "dictionary": {
        "long": _sliced(_holey(pa.array(_zipf))).dictionary_encode(),
        "double": _sliced(_holey(pa.array(_zipf / 7))).dictionary_encode(),
        "string": _sliced(_holey(_STRINGS)).dictionary_encode(),
    },
    "wide strings and views": {"string": pa.chunked_array([_STRINGS.cast(pa.string_view())])},
    "lists": {
        "long": pa.array([[i, i + 1] if i % 3 else ([] if i % 2 else None) for i in range(ROWS)]),
        "string": pa.array([[str(i % 40), None] if i % 3 else [] for i in range(ROWS)]),
    },
    "zero-length": {
        "long": pa.array([], pa.int64()),
        "double": pa.array([], pa.float64()),
        "string": pa.array([], pa.string()),
    },
}


def columns(*kinds: str) -> list[tuple[str, str, Any]]:
    """(name, kind, column) of every stream of those kinds."""
    return [(n, kind, column[kind]) for n, column in STREAMS.items() for kind in kinds if kind in column]


def values_of(column: Any) -> list[Any]:
    """The values in order, one by one: lists flattened, nulls left out."""
    flat: list[Any] = []
    for value in column.to_pylist():
        flat.extend(value if isinstance(value, list) else [value])
    return [value for value in flat if value is not None]


def rows_of(column: Any) -> list[int]:
    """The row of each of `values_of`."""
    rows: list[int] = []
    for row, value in enumerate(column.to_pylist()):
        rows.extend(row for inner in (value if isinstance(value, list) else [value]) if inner is not None)
    return rows


def fresh(kind: str, seed: int, rows: int = ROWS) -> pa.Array:
    """Ordinary values of a kind, other ones for each seed."""
    rng = np.random.default_rng(seed)
    if kind == "double":
        return pa.array(rng.standard_normal(rows))
    if kind == "unsigned":
        return pa.array(rng.integers(0, 2**64, rows, np.uint64))
    numbers = rng.integers(0, 1 << 40, rows) if seed % 2 else rng.zipf(1.2, rows) % 10**6
    return pa.array(numbers) if kind == "long" else _text(numbers)
