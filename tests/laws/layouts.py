"""Every valid layout of a column: the same values in each way that Arrow, NumPy, Polars and pandas may lay
them out.

A layout's values are a plain Python list that was there first; nothing here is read back from Arrow. Beneath
whatever is null lie other values, which nobody may ever see.
"""

from __future__ import annotations

import itertools
from array import array
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

Values = list[Any]
"""A value a row, None for a gap; of a column of lists a list of them a row."""


@dataclass(frozen=True)
class Layout:
    """One column: how it lies, which sort of values it has, how it is made, and the values that it has."""

    name: str
    sort: str
    make: Callable[[], Any]
    values: Values

    def __str__(self) -> str:
        return f"{self.sort}: {self.name}"

    @property
    def flat(self) -> tuple[Values, list[int]]:
        """The values that count, and the row of each."""
        pairs = [(item, row) for row, value in enumerate(self.values) for item in _leaves(value)]
        return [item for item, _ in pairs], [row for _, row in pairs]


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    elif value is not None:
        yield value


def _day(number: int) -> datetime:
    return datetime(2026, 7, 1) + timedelta(days=number % 25, milliseconds=100 * number)


SORTS: dict[str, tuple[pa.DataType, Values, Values]] = {
    "long": (pa.int64(), [3, None, 1, 250, 3, None, 17, 0, -8], [9001, 9002, 9003]),
    "double": (pa.float64(), [0.5, None, -2.25, 0.5, 1e300, None, 3.0, 0.0], [9.125, 8.125, 7.125]),
    "string": (
        pa.string(),
        ["pear", None, "", "日本語", "pear", None, "a text longer than twelve bytes"],
        ["hidden", "beneath a gap that is long", "?"],
    ),
    "timestamp": (
        pa.timestamp("us"),
        [_day(1), None, _day(2), _day(1), datetime(1969, 12, 31, 23, 59, 59, 900_000)],
        [_day(91), _day(92), _day(93)],
    ),
}
"""The type, some values, and those that lie hidden."""


def _array(values: Values, kind: pa.DataType) -> pa.Array:
    return pa.array(values, kind)


def _over_values(values: Values, kind: pa.DataType, hidden: Values) -> pa.Array:
    """Gaps beneath which there are values."""
    others = itertools.cycle(hidden)
    whole = pa.array([next(others) if value is None else value for value in values], kind)
    gaps = pa.array([value is not None for value in values]).buffers()[1]
    return pa.Array.from_buffers(kind, len(values), [gaps, *whole.buffers()[1:]])


def _sliced(array: pa.Array) -> pa.Array:
    padded = pa.concat_arrays([array.slice(0, 2), array, array.slice(0, 3)])
    return padded.slice(min(2, len(array)), len(array))


def _in_null_structs(array: pa.Array, whole: pa.Array) -> pa.Array:
    """A field of structs that are null where the array is: the field itself may hold values there."""
    gaps = array.is_null()
    return pa.StructArray.from_arrays([whole], ["inner"], mask=gaps).flatten()[0]


def _dictionary(values: Values, kind: pa.DataType, hidden: Values, index: pa.DataType) -> pa.Array:
    """Nulls by the dictionary in even rows and by the index in odd ones, unused entries, nothing in order."""
    known = [value for value in dict.fromkeys(values) if value is not None]
    entries = [hidden[0], *reversed(known), None, hidden[1]]
    null = len(entries) - 2
    numbers = [
        (null if row % 2 == 0 else None) if value is None else entries.index(value)
        for row, value in enumerate(values)
    ]
    return pa.DictionaryArray.from_arrays(pa.array(numbers, index), pa.array(entries, kind))


def _runs(values: Values, kind: pa.DataType, ends: pa.DataType) -> pa.Array:
    """Runs, the first of which begins before the column."""
    groups = [(value, len(list(rows))) for value, rows in itertools.groupby(values)]
    lengths = [size for _, size in groups]
    if not lengths:
        return pa.RunEndEncodedArray.from_arrays(pa.array([], ends), pa.array([], kind))
    lengths[0] += 2
    whole = pa.RunEndEncodedArray.from_arrays(
        pa.array(np.cumsum(lengths), ends), pa.array([value for value, _ in groups], kind)
    )
    return whole.slice(2, len(values))


def _chunked(array: pa.Array) -> pa.ChunkedArray:
    n = len(array)
    cuts = [0, 0, n // 3, n // 3, n, n]
    return pa.chunked_array([_sliced(array.slice(a, b - a)) for a, b in itertools.pairwise(cuts)], array.type)


def _flat_arrow(values: Values, kind: pa.DataType, hidden: Values) -> dict[str, Callable[[], Any]]:
    """Layouts of a column whose values are no lists; also what lists hold."""
    plain = _array(values, kind)
    over = _over_values(values, kind, hidden)
    layouts: dict[str, Callable[[], Any]] = {
        "plain": lambda: plain,
        "gaps over values": lambda: over,
        "sliced": lambda: _sliced(over),
        "under null structs": lambda: _in_null_structs(plain, pa.array(over.to_pylist(), kind)),
        "dictionary": lambda: _dictionary(values, kind, hidden, pa.int8()),
        "dictionary sliced": lambda: _sliced(_dictionary(values, kind, hidden, pa.uint64())),
        "runs": lambda: _runs(values, kind, pa.int16()),
        "runs of a dictionary": lambda: pa.RunEndEncodedArray.from_arrays(
            pa.array(np.arange(1, len(values) + 1), pa.int64()),
            _dictionary(values, kind, hidden, pa.int16()),
        ),
    }
    if pa.types.is_string(kind):
        for other in (pa.large_string(), pa.string_view()):
            layouts[str(other)] = lambda other=other: _sliced(plain).cast(other)  # type: ignore[misc]
        layouts["dictionary of views"] = lambda: _dictionary(values, pa.string_view(), hidden, pa.int32())
        layouts["runs of views"] = lambda: _runs(values, pa.string_view(), pa.int32())
    if pa.types.is_integer(kind):
        layouts["narrow"] = lambda: over.cast(pa.int16(), safe=False)
    if pa.types.is_timestamp(kind):
        layouts["milliseconds"] = lambda: over.cast(pa.timestamp("ms"))
        layouts["nanoseconds"] = lambda: _sliced(over).cast(pa.timestamp("ns"))
        layouts["of a zone"] = lambda: over.view(pa.timestamp("us", "Asia/Tokyo"))
    return layouts


def _lists_of(values: Values) -> Values:
    """The values as lists: of several lengths, some empty, one null in the middle and one at the end."""
    cuts = [0, 2, 2, 5, 5, 6, len(values)]
    lists: Values = [values[a:b] for a, b in itertools.pairwise(cuts)]
    return [*lists[:3], None, *lists[3:], None]


def _nested(lists: Values, items: pa.Array, hidden: pa.Array, kind: Any) -> pa.Array:
    """Lists over these items, the nulls among them over hidden ones, behind and before still others."""
    parts, ends, at = [hidden.slice(0, 1)], [1], 0
    for value in lists:
        parts.append(hidden.slice(0, 2) if value is None else items.slice(at, len(value)))
        at += 0 if value is None else len(value)
        ends.append(ends[-1] + len(parts[-1]))
    flat = pa.concat_arrays([*parts, hidden.slice(0, 1)])
    gaps = pa.array([value is None for value in lists])
    return kind.from_arrays(
        pa.array(ends, pa.int32() if kind is pa.ListArray else pa.int64()), flat, mask=gaps
    )


def _views(lists: Values, items: pa.Array, hidden: pa.Array, kind: Any) -> pa.Array:
    """List views whose offsets run backwards over the items, the nulls over hidden ones."""
    flat, starts, at = pa.concat_arrays([items, hidden]), [], 0
    sizes = [2 if value is None else len(value) for value in lists]
    for value, size in zip(lists, sizes):
        starts.append(len(items) if value is None else at)
        at += 0 if value is None else size
    index = pa.int32() if kind is pa.ListViewArray else pa.int64()
    gaps = pa.array([value is None for value in lists])
    return kind.from_arrays(pa.array(starts, index), pa.array(sizes, index), flat, mask=gaps)


def _list_arrow(values: Values, kind: pa.DataType, hidden: Values) -> Iterator[Layout]:
    lists = _lists_of(values)
    for name, make in _flat_arrow(values, kind, hidden).items():
        items = make()
        beneath = pa.array(hidden, kind)
        if items.type != kind:
            try:
                beneath = beneath.cast(items.type)
            except pa.ArrowException:
                continue  # Arrow neither casts to runs nor joins dictionaries of two sorts
        try:
            pa.concat_arrays([items.slice(0, 1), beneath])
        except pa.ArrowException:
            continue
        yield from _lists_over(lists, items, beneath, name)


def _lists_over(lists: Values, items: pa.Array, hidden: pa.Array, name: str) -> Iterator[Layout]:
    def layout(how: str, make: Callable[[], Any], values: Values = lists) -> Layout:
        return Layout(f"{how} of {name}", "", make, values)

    for kind in (pa.ListArray, pa.LargeListArray):
        yield layout(kind.__name__, lambda kind=kind: _nested(lists, items, hidden, kind))  # type: ignore[misc]
    over = _nested(lists, items, hidden, pa.ListArray)
    yield layout("sliced lists", lambda: _sliced(over))
    yield layout("half of the lists", lambda: over.slice(2, 4), lists[2:6])
    yield layout("chunks of lists", lambda: _chunked(over))
    yield layout("a dictionary of lists", lambda: _twice(over), [*lists, *lists])
    yield layout("a table's field of null structs", lambda: _table_field(over), _with_gap(lists, 2))
    for view in (pa.ListViewArray, pa.LargeListViewArray):
        yield layout(view.__name__, lambda view=view: _views(lists, items, hidden, view))  # type: ignore[misc]
    pairs: Values = [lists[0], None, lists[0], None]
    two = pa.concat_arrays([items.slice(0, 2), hidden.slice(0, 2), items.slice(0, 2), hidden.slice(0, 2)])
    gaps = pa.array([False, True, False, True])
    fixed = pa.FixedSizeListArray.from_arrays(two, 2, mask=gaps)
    yield layout("fixed lists", lambda: fixed, pairs)
    yield layout("sliced fixed lists", lambda: fixed.slice(1, 3), pairs[1:])
    outer = pa.ListArray.from_arrays(
        pa.array([0, 2, 5, 5, 8], pa.int32()), over, mask=pa.array([False, True, False, False])
    )
    yield layout("lists of lists", lambda: outer, [lists[:2], None, [], lists[5:]])
    yield layout("lists of sliced lists", lambda: _of_slices(over), [lists[1:4], None, lists[4:6]])


def _over_encoded(sort: str) -> Iterator[Layout]:
    """Lists, list views and structs over what Arrow can't join: dictionaries, runs and extension types."""
    kind, values, hidden = SORTS[sort]
    n = len(values)
    ends, starts = pa.array([1, 3, 5, n], pa.int32()), pa.array([3, 0, 1], pa.int32())
    gaps = pa.array([False, True, False])
    inner = {
        "a dictionary": _dictionary(values, kind, hidden, pa.int8()),
        "runs": _runs(values, kind, pa.int16()),
        "an extension": _extension(_over_values(values, kind, hidden)),
    }
    lists = [values[1:3], None, values[5:n]]
    views = [values[3:5], values[0:3], values[1:2]]
    sizes = pa.array([2, 3, 1], pa.int32())
    for name, items in inner.items():
        over = pa.ListArray.from_arrays(ends, items, mask=gaps)
        large = pa.LargeListArray.from_arrays(ends.cast(pa.int64()), items, mask=gaps)
        view = pa.ListViewArray.from_arrays(starts, sizes, items)
        fixed = pa.FixedSizeListArray.from_arrays(items.slice(0, 4), 2)
        field = pa.StructArray.from_arrays([over], ["tags"], mask=pa.array([False, False, True])).flatten()[0]
        for how, column, held in (
            ("null lists", over, lists),
            ("null large lists", large, lists),
            ("a slice of null lists", over.slice(1), lists[1:]),
            ("views", view, views),
            ("a slice of views", view.slice(1, 1), views[1:2]),
            ("fixed lists", fixed, [values[0:2], values[2:4]]),
            ("a slice of fixed lists", fixed.slice(1), [values[2:4]]),
            ("lists of null structs", field, _with_gap(lists, 2)),
        ):
            yield Layout(f"{how} of {name}", sort, lambda column=column: column, held)  # type: ignore[misc]
    yield Layout("extension", sort, lambda: _sliced(inner["an extension"]), values)


def _extension(storage: pa.Array) -> pa.Array:
    """The values as those of another system's type that Arrow doesn't know."""
    return pa.ExtensionArray.from_storage(pa.opaque(storage.type, "price", "elsewhere"), storage)


def _python(sort: str, values: Values) -> Iterator[Layout]:
    """What Python, NumPy and pandas hold values and gaps in, one at a time."""
    known = [value for value in values if value is not None]
    several = itertools.cycle([None, pd.NA, pd.NaT] if sort != "double" else [None, pd.NA])
    gaps = [next(several) if value is None else value for value in values]
    masked = [np.ma.masked if value is None else value for value in values]

    def layout(name: str, make: Callable[[], Any], given: Values = values) -> Layout:
        return Layout(name, sort, make, given)

    yield layout("Python tuple", lambda: tuple(values))
    yield layout("Python deque", lambda: deque(values))
    yield layout("values of a dict", lambda: dict(enumerate(values)).values())
    yield layout("Python filter", lambda: filter(lambda value: value is not None, values), known)
    yield layout("list of several gaps", lambda: gaps)
    yield layout("NumPy objects of several gaps", lambda: np.array(gaps, object))
    yield layout("list with what NumPy masks", lambda: masked)
    yield layout("list of NumPy's arrays of one", lambda: [np.array(value) for value in known], known)
    yield layout("list of Arrow scalars", lambda: [pa.scalar(value) for value in known], known)
    yield layout(
        "list of lists of several gaps", lambda: [gaps[:3], None, gaps[3:]], [values[:3], None, values[3:]]
    )
    yield layout(
        "lists of tuples",
        lambda: [tuple(known[:2]), (), None, tuple(known[2:])],
        [known[:2], [], None, known[2:]],
    )
    if sort in ("long", "double"):
        code = "q" if sort == "long" else "d"
        yield layout("array.array", lambda: array(code, known), known)
        yield layout("view of an array", lambda: memoryview(array(code, known)), known)
        yield layout("every second of a view", lambda: memoryview(array(code, known))[::2], known[::2])
        yield layout("pandas sparse", lambda: pd.Series(pd.arrays.SparseArray(known)), known)
        yield layout("list of NumPy scalars", lambda: list(np.array(known)), known)
    if sort == "long":
        yield layout("range", lambda: range(-3, 9, 4), [*range(-3, 9, 4)])
    if sort == "string":
        hidden = np.array(["?" if value is None else value for value in values])
        yield layout(
            "NumPy mask of texts", lambda: np.ma.MaskedArray(hidden, [value is None for value in values])
        )
        yield layout("array of letters", lambda: array("u", "pear"), [*"pear"])
    if sort == "timestamp":
        times = np.array(["NaT" if value is None else value for value in values], "M8[us]")
        mask = [value is None for value in values]
        yield layout("NumPy mask of times", lambda: np.ma.MaskedArray(np.nan_to_num(times), mask))
        yield layout(
            "pandas timestamps", lambda: [pd.Timestamp(value) if value else pd.NaT for value in values]
        )
        zoned = [
            value and value.replace(tzinfo=UTC).astimezone(timezone(timedelta(hours=9))) for value in values
        ]
        yield layout("list of a zone", lambda: zoned)


def _times_of_day() -> Iterator[Layout]:
    """Times of day of every unit."""
    values: Values = [time(1, 2, 3), None, time(0), time(23, 59, 59)]
    for kind in (pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")):
        over = _over_values(values, kind, [time(7), time(8)])
        yield Layout(f"{kind} sliced", "time", lambda over=over: _sliced(over), values)  # type: ignore[misc]
        runs = _runs(values, kind, pa.int32())
        yield Layout(f"runs of {kind}", "time", lambda runs=runs: runs, values)  # type: ignore[misc]
    yield Layout("Polars", "time", lambda: pl.Series(values), values)
    yield Layout(
        "Polars lists",
        "time",
        lambda: pl.Series([values[:2], None, values[2:]]),
        [values[:2], None, values[2:]],
    )
    yield Layout("Python", "time", lambda: values, values)
    yield Layout("pandas", "time", lambda: pd.Series(values, dtype=pd.ArrowDtype(pa.time64("us"))), values)


def _twice(lists: pa.Array) -> pa.Array:
    """Each list once in the dictionary, twice in the column."""
    return pa.DictionaryArray.from_arrays(pa.array([*range(len(lists))] * 2, pa.int16()), lists)


def _with_gap(values: Values, at: int) -> Values:
    return [None if row == at else value for row, value in enumerate(values)]


def _table_field(lists: pa.Array) -> pa.ChunkedArray:
    """A struct's field in a table that was flattened; one struct is null, over a list that isn't."""
    gaps = pa.array([row == 2 for row in range(len(lists))])
    struct = pa.StructArray.from_arrays([lists], ["tags"], mask=gaps)
    return pa.table({"post": struct}).flatten().column("post.tags")


def _of_slices(lists: pa.Array) -> pa.Array:
    """Lists whose lists are a slice of others; the one in the middle is null over one of them."""
    ends = pa.array([0, 3, 3, 5], pa.int32())
    inner = lists.slice(1, 5)
    return pa.ListArray.from_arrays(ends, inner, mask=pa.array([False, True, False]))


def _numpy(sort: str, values: Values) -> dict[str, tuple[Callable[[], Any], Values]]:
    """NumPy's arrays; those that have no gaps stand for the values without."""
    known = [value for value in values if value is not None]
    gapless: dict[str, Callable[[], Any]] = {
        "NumPy objects": lambda: np.array(known, object),
    }
    if sort in ("long", "double"):
        base = "i8" if sort == "long" else "f8"
        plain = np.array(known, base)
        gapless |= {
            "NumPy": lambda: plain,
            "NumPy backwards": lambda: plain[::-1].copy()[::-1],
            "NumPy every third": lambda: np.repeat(plain, 3)[::3],
            "NumPy big-endian": lambda: plain.astype(f">{base}"),
            "NumPy big-endian every second": lambda: np.repeat(plain.astype(f">{base}"), 2)[::2],
            "NumPy column of a matrix": lambda: np.column_stack([plain, plain + 1])[:, 0],
            "NumPy field of records": lambda: np.rec.fromarrays([plain, plain], names="a,b").b,
            "NumPy read-only": lambda: np.frombuffer(plain.tobytes(), base),
            "NumPy unaligned": lambda: np.frombuffer(b"\0" + plain.tobytes(), np.uint8)[1:].view(base),
        }
    if sort == "long":
        gapless["NumPy int16 backwards"] = lambda: np.array(known, ">i2")[::-1].copy()[::-1]
    if sort == "double":
        gapless["NumPy long double"] = lambda: np.array(known, np.longdouble)[::-1][::-1]
    if sort == "string":
        gapless |= {
            "NumPy texts": lambda: np.array(known),
            "NumPy big-endian texts": lambda: np.array(known).astype(np.array(known).dtype.newbyteorder(">")),
            "NumPy every second text": lambda: np.repeat(np.array(known), 2)[::2],
            "NumPy StringDType": lambda: np.array(known, np.dtypes.StringDType())[::-1].copy()[::-1],
        }
    layouts = {name: (make, known) for name, make in gapless.items()}
    if sort == "timestamp":
        for unit in ("ms", "us", "ns", "100ms", "20ms", "50us", "100us", "25ns", "1000ns"):
            times = np.array(values, "M8[us]").astype(f"M8[{unit}]")
            layouts[f"NumPy {unit}"] = lambda times=times: times, values  # type: ignore[misc]
            layouts[f"NumPy {unit} big-endian backwards"] = (
                lambda times=times: times.astype(times.dtype.newbyteorder(">"))[::-1].copy()[::-1],  # type: ignore[misc]
                values,
            )
            layouts[f"list of NumPy {unit}"] = lambda times=times: list(times), values  # type: ignore[misc]
    hidden = [7 if value is None else value for value in values]
    mask = [value is None for value in values]
    if sort in ("long", "double"):
        layouts["NumPy mask"] = lambda: np.ma.MaskedArray(np.array(hidden), mask), values
        last = np.array(hidden[::-1], ">i4" if sort == "long" else ">f8")
        layouts["NumPy mask backwards"] = lambda: np.ma.MaskedArray(last, mask[::-1])[::-1], values
    layouts["Python list"] = lambda: list(values), values
    layouts["Python generator"] = lambda: (value for value in values), values
    layouts["NumPy objects with gaps"] = lambda: np.array(values, object)[::-1].copy()[::-1], values
    return layouts


def _spans_and_days() -> Iterator[Layout]:
    """NumPy's coarse units, one and several of them at a time."""
    for unit in ("s", "m", "h", "D", "W", "M", "Y", "10s", "15m", "6h", "7D", "2W", "3M", "10Y"):
        times = np.array([0, 1, -3, 2, 1], f"M8[{unit}]")
        times[3] = "NaT"
        values = [None if np.isnat(one) else one.astype("M8[s]").item() for one in times]
        yield Layout(f"NumPy {unit}", "timestamp", lambda times=times: times, values)  # type: ignore[misc]
        yield Layout(f"list of {unit}", "timestamp", lambda times=times: list(times), values)  # type: ignore[misc]
    days = [date(2026, 7, 1), None, date(1969, 12, 31)]
    plain = [None if one is None else datetime(one.year, one.month, one.day) for one in days]
    yield Layout("dates", "timestamp", lambda: pa.array(days), plain)
    yield Layout("dates of milliseconds", "timestamp", lambda: _sliced(pa.array(days, pa.date64())), plain)
    plain_lengths = [timedelta(seconds=3), None, timedelta(days=-1)]
    for unit in ("ms", "us", "ns"):
        polars = pl.Series(plain_lengths, dtype=pl.Duration(unit))
        yield Layout(f"Polars {unit}", "duration", lambda polars=polars: polars[::-1][::-1], plain_lengths)  # type: ignore[misc]
    yield Layout("pandas", "duration", lambda: pd.Series(pd.to_timedelta(plain_lengths)), plain_lengths)
    spans = [np.timedelta64(3, "100ms"), None, np.timedelta64(-1, "D")]
    lengths = [timedelta(milliseconds=300), None, timedelta(days=-1)]
    yield Layout("list of lengths of time", "duration", lambda: spans, lengths)
    for unit in ("100ms", "2h", "3W", "25ns"):
        times = np.array([4, -8, 0], f"m8[{unit}]")
        yield Layout(f"NumPy m8[{unit}]", "duration", lambda times=times: times, _lengths(times))  # type: ignore[misc]
    later = datetime(2026, 7, 1, 5)
    mixed = [[days[0], later], None, [later]]
    yield Layout("lists of dates and times", "timestamp", lambda: mixed, [[plain[0], later], None, [later]])


def _lengths(times: np.ndarray) -> Values:
    """NumPy's lengths of time, to the microsecond."""
    return [timedelta(microseconds=int(one / np.timedelta64(1, "us") // 1)) for one in times]


def _polars(sort: str, values: Values, hidden: Values) -> Iterator[Layout]:
    kind = {"long": pl.Int64, "double": pl.Float64, "string": pl.String, "timestamp": pl.Datetime("us")}[sort]

    def layout(name: str, make: Callable[[], Any], given: Values = values) -> Layout:
        return Layout(f"Polars {name}", sort, make, given)

    there = [value is not None for value in values]
    whole = [hidden[0] if value is None else value for value in values]
    frame = pl.DataFrame({"v": pl.Series(whole, dtype=kind), "ok": there})
    lists = _lists_of(values)
    full = [[hidden[0], hidden[1]] if value is None else value for value in lists]
    listed = pl.DataFrame(
        {"v": pl.Series(full, dtype=pl.List(kind)), "ok": [value is not None for value in lists]}
    )
    when = pl.when("ok").then("v").alias("v")
    yield layout("when then", lambda: frame.select(when)["v"])
    yield layout(
        "slice", lambda: pl.concat([pl.Series([hidden[0]], dtype=kind), frame.select(when)["v"]])[1:]
    )
    yield layout("filter", lambda: frame.filter("ok")["v"], [value for value in values if value is not None])
    yield layout("when then of lists", lambda: listed.select(when)["v"], lists)
    yield layout(
        "chunks of lists", lambda: pl.concat([listed.select(when)["v"]] * 2, rechunk=False), lists * 2
    )
    yield layout("tail of lists", lambda: listed.select(when)["v"].tail(5), lists[-5:])
    struct = pl.struct("v").alias("s")
    yield layout(
        "unnest of null structs",
        lambda: listed.select(pl.when("ok").then(struct).alias("s")).unnest("s")["v"],
        lists,
    )
    filled = listed.select(when).filter(
        pl.col("v").list.len() != 0
    )  # versions differ in what empty lists give
    yield layout("explode", lambda: filled.explode("v")["v"], [v for some in lists for v in some or []])
    deep = [[lists[0], lists[3]], None, [lists[2]]]
    hid = pl.DataFrame({"v": pl.Series([deep[0], [full[3]], deep[2]]), "ok": [True, False, True]})
    yield layout("when then of lists of lists", lambda: hid.select(when)["v"], deep)
    pairs = pl.DataFrame({"v": pl.Series([full[0]] * 3, dtype=pl.Array(kind, 2)), "ok": [True, False, True]})
    yield layout("when then of arrays", lambda: pairs.select(when)["v"], [full[0], None, full[0]])
    if sort == "string":
        enum = pl.Enum(sorted({*whole, *hidden}))
        yield layout("categorical", lambda: frame.select(when)["v"].cast(pl.Categorical))
        yield layout("enum", lambda: frame.select(when)["v"].cast(enum)[::-1][::-1])
        yield layout(
            "when then of lists of enums", lambda: listed.select(when)["v"].cast(pl.List(enum)), lists
        )
        yield layout("objects", lambda: pl.Series(values, dtype=pl.Object))


def _pandas(sort: str, values: Values) -> Iterator[Layout]:
    known = [value for value in values if value is not None]

    def layout(name: str, make: Callable[[], Any], given: Values = values) -> Layout:
        return Layout(f"pandas {name}", sort, make, given)

    nullable = {
        "long": ("Int64", "int64[pyarrow]"),
        "double": ("double[pyarrow]",),
        "string": ("string", "string[pyarrow]", "large_string[pyarrow]"),
        "timestamp": ("datetime64[us]", "timestamp[us][pyarrow]", "datetime64[ns]"),
    }[sort]
    for dtype in nullable:
        series = pd.Series(values, dtype=dtype)
        yield layout(dtype, lambda series=series: series)  # type: ignore[misc]
        yield layout(
            f"{dtype} filtered",
            lambda series=series: series[series.notna()],
            known,  # type: ignore[misc]
        )
        yield layout(f"{dtype} backwards", lambda series=series: series[::-1], values[::-1])  # type: ignore[misc]
        if "pyarrow" in dtype:  # each part remains a chunk
            parts = series[:2], series[2:2], series[2:]
            yield layout(f"{dtype} of several parts", lambda parts=parts: pd.concat(parts))  # type: ignore[misc]
    yield layout("objects", lambda: pd.Series(values, dtype=object, index=range(5, 5 + len(values))))
    yield layout("categories", lambda: pd.Series(values, dtype="category"))
    yield layout("index", lambda: pd.Index(known), known)
    listed = _lists_of(values)
    arrow = pd.ArrowDtype(pa.list_(SORTS[sort][0]))
    yield layout("lists of objects", lambda: pd.Series(listed, dtype=object), listed)
    yield layout("lists of Arrow", lambda: pd.Series(listed, dtype=arrow), listed)
    yield layout(
        "lists of Arrow of several parts",
        lambda: pd.concat([pd.Series(listed, dtype=arrow)] * 2),
        [*listed, *listed],
    )
    runs = pa.chunked_array([_runs(values, SORTS[sort][0], pa.int32())] * 2)
    yield layout("runs of Arrow", lambda: pd.Series(pd.arrays.ArrowExtensionArray(runs)), [*values, *values])
    yield layout(
        "lists of Arrow filtered",
        lambda: pd.Series(listed, dtype=arrow)[[True, False] * 4],
        listed[::2],
    )


def layouts() -> list[Layout]:
    """Every layout of every sort."""
    made: list[Layout] = []
    for sort, (kind, values, hidden) in SORTS.items():
        flat = _flat_arrow(values, kind, hidden)
        made += [Layout(name, sort, make, values) for name, make in flat.items()]
        made += [
            Layout(f"chunks of {name}", sort, lambda make=make: _chunked(make()), values)  # type: ignore[misc]
            for name, make in flat.items()
            if not name.startswith(("dictionary", "runs"))
        ]
        made += [Layout(one.name, sort, one.make, one.values) for one in _list_arrow(values, kind, hidden)]
        made += [Layout(name, sort, make, given) for name, (make, given) in _numpy(sort, values).items()]
        made += [*_polars(sort, values, hidden), *_pandas(sort, values)]
        made += [*_over_encoded(sort), *_python(sort, values)]
        made.append(Layout("no chunks", sort, lambda kind=kind: pa.chunked_array([], kind), []))  # type: ignore[misc]
        empty = pa.array([], pa.list_(kind))
        made.append(Layout("no lists", sort, lambda empty=empty: empty, []))  # type: ignore[misc]
        one_null = pa.array([None], pa.list_(kind))
        made.append(Layout("one null list", sort, lambda one=one_null: one, [None]))  # type: ignore[misc]
    return [*made, *_spans_and_days(), *_times_of_day()]


LAYOUTS = layouts()


def records() -> list[Layout]:
    """Rows of several fields, for families that keep them: structs, tables and frames."""
    tags = _nested(
        [["a", "b"], None, ["c"], []], pa.array(["a", "b", "c"]), pa.array(["?", "!"]), pa.ListArray
    )
    users = _over_values(["ann", "bob", None, "cy"], pa.string(), ["hidden"])
    rows: Values = [
        {"user": "ann", "tags": ["a", "b"]},
        {"user": "bob", "tags": None},
        {"user": None, "tags": ["c"]},
        {"user": "cy", "tags": []},
    ]
    table = pa.table({"user": users, "tags": tags})
    gaps = pa.array([False, True, False, False])
    masked = pa.StructArray.from_arrays([users, tags], ["user", "tags"], mask=gaps)
    batch = pa.record_batch({"user": users, "tags": tags})
    listed = _nested([[0, 1], None, [2, 3]], masked, masked, pa.ListArray)
    frame = table.to_pandas()
    kept = frame[[True, False, True, True]]
    polars = pl.DataFrame(table)
    filtered = [rows[0], *rows[2:]]
    indexed = kept.set_index(pd.Index(list("xyz"), name="letter"))
    layouts: dict[str, tuple[Callable[[], Any], Values]] = {
        "table": (lambda: table, rows),
        "chunks of a table": (lambda: pa.concat_tables([table, table[:0], table[1:]]), rows + rows[1:]),
        "batch": (lambda: batch.slice(1), rows[1:]),
        "empty batch": (lambda: batch.slice(0, 0), []),
        "structs": (lambda: masked, _with_gap(rows, 1)),
        "sliced structs": (lambda: _sliced(masked), _with_gap(rows, 1)),
        "lists of structs": (lambda: listed, [[rows[0], None], None, rows[2:]]),
        "runs of structs": (lambda: _struct_runs(masked), [rows[0], rows[0], None, rows[2]]),
        "Python": (lambda: rows, rows),
        "Polars frame": (lambda: polars, rows),
        "Polars frame filtered": (lambda: polars.drop_nulls("user"), [*rows[:2], rows[3]]),
        "pandas frame": (lambda: frame, rows),
        "pandas frame filtered": (lambda: kept, filtered),
        "pandas frame with an index": (lambda: indexed, filtered),
        "table of a filtered frame": (lambda: pa.Table.from_pandas(kept), filtered),
        "batch of a filtered frame": (lambda: pa.RecordBatch.from_pandas(kept), filtered),
    }
    return [Layout(name, "record", make, values) for name, (make, values) in layouts.items()]


def _struct_runs(structs: pa.Array) -> pa.Array:
    return pa.RunEndEncodedArray.from_arrays(pa.array([2, 3, 4], pa.int32()), structs.slice(0, 3))


RECORDS = records()

REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: pd.IntervalIndex.from_breaks([0, 1, 2]), "pandas.interval"),
    (lambda: pd.cut([1, 2, 3], 2), "pandas.interval"),
    (lambda: pd.period_range("2026-01", periods=2, freq="M"), "pandas.period"),
    (
        lambda: pl.Series([1, None], dtype=pl.Int128),
        "Int128.*: Arrow has no such type",
    ),
    (
        lambda: pl.Series([1, None], dtype=pl.UInt128),
        "UInt128.*: Arrow has no such type",
    ),
    (lambda: pl.Series([[1], None], dtype=pl.List(pl.Int128)), "Int128.* can't be read as a column"),
    (lambda: [2**64, 1], "whole numbers must fit int64, or uint64 if none is negative"),
    (lambda: [2**63, -1], "whole numbers must fit int64"),
    (lambda: np.array([2**70, None], object), "whole numbers must fit int64"),
    (lambda: [[2**70], [1]], "whole numbers must fit int64"),
    (lambda: "\ud800", "not valid Unicode"),
    (lambda: ["a", "\udc80b"], "not valid Unicode"),
    (lambda: np.array(["\ud800"]), "not valid Unicode"),
    (lambda: [time(1, tzinfo=UTC)], "times of day can't have a zone"),
    (lambda: [[time(1), time(2, tzinfo=UTC)]], "times of day can't have a zone"),
    (lambda: [Decimal("Infinity"), Decimal(1)], "decimals must be finite"),
    (lambda: np.zeros(2, "V3"), "V3"),
    (lambda: np.zeros(2, [("a", "i4")]), "can't be read as a column"),
    (lambda: np.ones((2, 2)), "one-dimensional column"),
    (lambda: memoryview(np.ones((2, 2))), "one-dimensional column"),
    (lambda: [1, "a", 2.5], "a column of one type"),
    (lambda: [object()], "a column of one type"),
    (lambda: pl.LazyFrame({"a": [1]}), "LazyFrame"),
    (lambda: pl.col("a"), "Expr"),
]
"""What no entrance takes, and what the error says of it."""
