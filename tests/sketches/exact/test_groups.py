"""The exact aggregates against plain Python, in every cut, order and type."""

from __future__ import annotations

import itertools
import math
import statistics
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.sketches.core.protocol import SketchError
from streamgauge.sketches.exact import (
    CountGroups,
    FirstGroups,
    LastGroups,
    MaxGroups,
    MeanGroups,
    MinGroups,
    SumGroups,
    VarianceGroups,
)

from ...cases import each

RNG = np.random.default_rng(7)
WIDE = Context(prec=38)
GROUPS = RNG.integers(0, 5, 400)
COLUMNS: dict[str, list[Any]] = {
    "ints": RNG.integers(-1000, 1000, 400).tolist(),
    "floats": (RNG.integers(-1000, 1000, 400) / 8).tolist(),
    "limits": RNG.choice([-(2**63), 2**63 - 1, 0, -1], 400).tolist(),
    "strings": [["", "é", "zebra", "ze", "日本", "a" * 40][i] for i in RNG.integers(0, 6, 400)],
    "binary": [[b"", b"\xff", b"\x00", b"ab"][i] for i in RNG.integers(0, 4, 400)],
    "decimals": [
        Decimal(digits).scaleb(-10, WIDE)
        for digits in ([-(10**38) + 1, 10**38 - 1, 0, -1, 1, 10**20][i] for i in RNG.integers(0, 6, 400))
    ],
    "bools": (RNG.integers(0, 2, 400) == 1).tolist(),
}
TIMES = RNG.integers(0, 30, 400)  # many ties
ALL = (CountGroups, SumGroups, MeanGroups, VarianceGroups, MinGroups, MaxGroups, FirstGroups, LastGroups)
TIMED = (FirstGroups, LastGroups)


def with_nulls(column: list[Any]) -> list[Any]:
    return [None if i % 7 == 3 else v for i, v in enumerate(column)]


def order(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def naive(cls: type, column: list[Any], group: int) -> Any:
    rows = [(int(TIMES[i]), v) for i, v in enumerate(column) if GROUPS[i] == group and v is not None]
    values = [v for _, v in rows]
    if cls is CountGroups:
        return len(values)
    if cls is SumGroups:
        return sum(values)
    if cls is MeanGroups:
        return float(sum(map(Fraction, values)) / len(values))
    if cls is VarianceGroups:
        return statistics.variance(map(Fraction, values))
    if cls in (MinGroups, MaxGroups):
        return (min if cls is MinGroups else max)(values, key=order)
    pick = min if cls is FirstGroups else max
    return pick(rows, key=lambda row: (row[0], order(row[1])))[1]


def fill(cls: type, column: Any, rows: np.ndarray, n: int = 5) -> Any:
    groups = cls(n)
    extra = {"time": TIMES[rows]} if cls in TIMED else {}
    groups.update(GROUPS[rows], column.take(pa.array(rows)), **extra)
    return groups


CASES = [
    (cls, name)
    for cls in ALL
    for name in COLUMNS
    if cls not in (SumGroups, MeanGroups, VarianceGroups) or name in ("ints", "floats", "bools")
]


@each(("cls", "name"), CASES)
def test_equals_plain_python_whole_cut_and_merged(cls: type, name: str) -> None:
    column = with_nulls(COLUMNS[name])
    array = pa.array(column)
    whole = fill(cls, array, np.arange(400))
    for group in range(5):
        expected = naive(cls, column, group)
        assert whole[group] == (pytest.approx(expected, rel=1e-13) if cls is VarianceGroups else expected)
    parts = [fill(cls, array, rows) for rows in np.array_split(RNG.permutation(400), 3)]
    exact = cls not in (MeanGroups, VarianceGroups)
    for order_of_parts in itertools.permutations(parts):
        merged = cls(5)
        for part in order_of_parts:
            merged.merge(np.arange(5), part.to_arrow())
        for group in range(5):
            assert merged[group] == (whole[group] if exact else pytest.approx(whole[group], rel=1e-12))
        if exact:
            assert merged.to_arrow().equals(whole.to_arrow())


@pytest.mark.parametrize("cls", ALL)
def test_two_orders_of_merging_give_the_same_bits(cls: type) -> None:
    array = pa.array(COLUMNS["floats"])
    a, b = (fill(cls, array, rows).to_arrow() for rows in (np.arange(150), np.arange(150, 400)))
    merged = []
    for pair in ((a, b), (b, a)):
        groups = cls(5)
        for column in pair:
            groups.merge(np.arange(5), column)
        merged.append(groups.to_arrow())
    assert merged[0].equals(merged[1])


@pytest.mark.parametrize("cls", ALL)
def test_empty_groups_and_growth(cls: type) -> None:
    groups = cls(0)
    groups.resize(3)
    extra = {"time": [5]} if cls in TIMED else {}
    groups.update([1], [2.5], **extra)
    groups.resize(1000)
    assert len(groups) == len(groups.to_arrow()) == 1000
    none = 0 if cls is CountGroups else None
    assert groups[0] == groups[999] == none
    assert groups[1] == {CountGroups: 1, VarianceGroups: None}.get(cls, 2.5)
    groups.merge(np.arange(3), groups.to_arrow()[:3])
    assert groups[1] == {CountGroups: 2, SumGroups: 5.0, VarianceGroups: 0.0}.get(cls, 2.5)
    with pytest.raises(IndexError):
        groups.update([1000], [1.0], **extra)
    with pytest.raises(IndexError):
        groups.update([-1], [1.0], **extra)
    with pytest.raises(ValueError, match="one group number a row"):
        groups.update([1, 1], [1.0], **extra)
    groups.update(np.empty(0, np.int64), pa.array([], pa.float64()), **({"time": []} if extra else {}))


def test_count_of_rows_values_elements() -> None:
    counts = CountGroups(2)
    counts.update(np.array([0, 1, 1], np.uint8), None)
    counts.update([0, 0, 1], [["a", None], None, ["b", "c"]])
    counts.update([1, 1], pa.array([{"x": 1}, None]))
    assert counts.to_arrow().to_pylist() == [2, 5]


def test_rows_of_one_group_may_be_given_by_one_number() -> None:
    counts = CountGroups(3)
    counts.update(np.broadcast_to(np.int64(1), 5), None)
    counts.update(np.broadcast_to(np.int64(1), 0), None)
    counts.update(np.broadcast_to(np.int64(2), 2), ["a", None])
    assert counts.to_arrow().to_pylist() == [0, 5, 1]
    with pytest.raises(IndexError, match="there are 3 groups"):
        counts.update(np.broadcast_to(np.int64(3), 5), None)


def test_whole_sums_are_exact_beyond_int64() -> None:
    top = 2**63 - 1
    sums = SumGroups(3)
    sums.update([0, 0, 1], [top, 1, 5])
    assert sums.to_arrow().to_pylist() == [2**63, 5, None]
    assert sums.answers().to_pylist() == [2**63, 5, None]
    for _ in range(3):
        sums.merge([0, 1, 2], sums.to_arrow())
    assert sums.to_arrow().to_pylist() == [2**66, 40, None]
    sums.update([0] * 9, [-(2**63)] * 9)
    assert sums.to_arrow().to_pylist() == [-(2**63), 40, None]
    assert sums.answers().equals(pa.array([-(2**63), 40, None], pa.int64()))


def test_unsigned_numbers_add_up() -> None:
    above = pa.array([2**64 - 1, 2**63, None], pa.uint64())
    for column in (
        above,
        np.array([2**64 - 1, 2**63], np.uint64),
        pa.array([[2**64 - 1], [2**63], []], pa.list_(pa.uint64())),
    ):
        sums, means = SumGroups(1), MeanGroups(1)
        sums.update([0] * len(column), column)
        means.update([0] * len(column), column)
        assert sums.to_arrow().to_pylist() == [2**64 - 1 + 2**63]
        assert means[0] == (2**64 - 1 + 2**63) / 2


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1]).cast(pa.decimal128(38, 2)),
        pa.array([1]).cast(pa.decimal256(40, 0)),
        pa.array([10**37], pa.decimal128(38, 0)),
        pa.array([-(10**37)], pa.decimal128(38, 0)),
    ],
    ids=str,
)
def test_decimals_that_are_no_sums_are_refused(column: pa.Array) -> None:
    with pytest.raises(SketchError, match="sum"):
        SumGroups(1).merge([0], column)
    with pytest.raises(SketchError, match="got whole numbers"):
        SumGroups(1, type="double").merge([0], SumGroups(1).to_arrow())


@pytest.mark.parametrize("digits", [5, 18, 28])
def test_sums_and_means_of_decimals_are_exact(digits: int) -> None:
    """Of as many digits as they may have, in lists as well, cut and merged in any order."""
    most = 10**digits - 1
    drawn = [int(RNG.integers(-(10**9), 10**9)) * most // 10**9 for _ in range(300)]
    values = [Decimal(one).scaleb(-4, WIDE) for one in (most, -most, most, most, *drawn)]
    column = pa.array([*values, None], pa.decimal128(digits, 4))
    numbers = RNG.integers(0, 3, len(column))
    total = [sum(map(Fraction, (v for v, g in zip(values, numbers) if g == k))) for k in range(3)]
    many = [sum(1 for _, g in zip(values, numbers) if g == k) for k in range(3)]
    params = SumGroups.aggregate.of_column(column.type)
    assert params == {"type": "decimal128(38, 4)"} == MeanGroups.aggregate.of_column(column.type)
    for cls, wanted in ((SumGroups, total), (MeanGroups, [float(t / n) for t, n in zip(total, many)])):
        parts = []
        for rows in np.array_split(RNG.permutation(len(column)), 4):
            part = cls(0, type=pa.decimal128(38, 4))
            part.resize(4)
            part.update(numbers[rows[:5]], column.take(pa.array(rows[:5])))
            lists = pa.array(
                [[one] for one in column.take(pa.array(rows[5:])).to_pylist()], pa.list_(column.type)
            )
            part.update(numbers[rows[5:]], lists)
            parts.append(part.to_arrow())
        for order_of_parts in (parts, parts[::-1]):
            merged = cls(4, type=pa.decimal128(38, 4))
            for part in order_of_parts:
                merged.merge(np.arange(4), part)
            assert [merged[group] for group in range(4)] == [*wanted, None]
            assert cls is MeanGroups or merged.answers().type == pa.decimal128(38, 4)


def test_what_is_no_exact_sum_of_decimals_is_refused() -> None:
    kind = pa.decimal128(38, 2)
    for cls in (SumGroups, MeanGroups):
        groups = cls(1, type=kind)
        groups.update([0], pa.array([None], pa.null()))
        assert groups[0] is None
        for column in (pa.array([1.5]), pa.array([Decimal("1.234")]), pa.array([Decimal(10) ** 30])):
            with pytest.raises(TypeError, match="cast it to one type"):
                groups.update([0], column)
    sums = SumGroups(1, type=kind)
    for column in (
        pa.array([1.5]),
        pa.array([Decimal("1.234")]),
        pa.array([Decimal(9).scaleb(35)], kind),
        pa.array([-Decimal(9).scaleb(35)], kind),
    ):
        with pytest.raises(SketchError, match="sum"):
            sums.merge([0], column)
    means = [{"n": 1, "sum": None}], [{"n": None, "sum": Decimal("1.00")}], [{"n": 1, "sum": 1.5}]
    for structs in means:
        with pytest.raises(SketchError):
            MeanGroups(1, type=kind).merge([0], pa.array(structs))


def test_decimals_of_too_many_digits_are_added_up_in_double() -> None:
    wide = pa.decimal128(29, 2)
    assert SumGroups.aggregate.of_column(wide) == {"type": "double"}
    assert MeanGroups.aggregate.of_column(wide) == {}


def test_sums_of_tables_that_were_int64_merge() -> None:
    sums = SumGroups(1)
    sums.merge([0], pa.array([7]))
    sums.merge([0], pa.array([None], pa.decimal128(38, 0)))
    assert sums.to_arrow().to_pylist() == [7]


def test_float_sum_is_compensated() -> None:
    sums = SumGroups(1)
    sums.update([0] * 4, [1.0, 1e100, 1.0, -1e100])
    assert sums[0] == 2.0
    sums.update([0, 0], [math.inf, 1.0])
    assert sums[0] == math.inf


def test_types_that_do_not_add_up() -> None:
    for cls in (SumGroups, MeanGroups, VarianceGroups):
        with pytest.raises(TypeError):
            cls(1).update([0], ["a"])
        with pytest.raises(TypeError):
            cls(1).update([0], pa.array([0], pa.timestamp("us")))
    sums = SumGroups(1)
    sums.update([0], [1])
    with pytest.raises(TypeError, match="int64 and is float64"):
        sums.update([0], [1.5])


@each(
    ("kind", "value"),
    [
        (pa.timestamp("us", "UTC"), 1_700_000_000_000_000),
        (pa.date32(), 19_000),
        (pa.time64("us"), 5),
        (pa.duration("ms"), 7),
        (pa.uint64(), 2**64 - 1),
        (pa.bool_(), True),
        (pa.float32(), 0.5),
        (pa.large_string(), "x"),
        (pa.string_view(), "x"),
        (pa.dictionary(pa.int8(), pa.string()), "x"),
        (pa.list_(pa.int16()), [3, 3]),
    ],
)
def test_extremes_keep_the_type(kind: pa.DataType, value: Any) -> None:
    array = pa.array([value, None], kind)
    scalar = 3 if isinstance(value, list) else array[0].as_py()
    for cls in (MinGroups, MaxGroups, FirstGroups, LastGroups):
        groups = cls(2)
        groups.update(
            [1, 0], array, **({"time": pa.array([1, 2], pa.timestamp("us", "UTC"))} if cls in TIMED else {})
        )
        assert groups.answers().to_pylist() == [None, scalar]
        again = cls(2)
        again.merge([0, 1], groups.to_arrow())
        assert again.to_arrow().equals(groups.to_arrow())


def test_unsigned_order_and_nan() -> None:
    highest, lowest = MaxGroups(1), MinGroups(1)
    highest.update([0, 0], np.array([1, 2**63 + 1], np.uint64))
    assert highest[0] == 2**63 + 1
    lowest.update([0, 0, 0], [math.nan, -math.inf, 3.0])
    assert lowest[0] == -math.inf
    top = MaxGroups(1)
    top.update([0, 0, 0], [math.nan, math.inf, -0.0])
    assert math.isnan(top[0])


def test_first_and_last_skip_rows_without_time_and_need_it() -> None:
    first, last = FirstGroups(1), LastGroups(1)
    for groups in (first, last):
        groups.update([0, 0, 0], ["early", "b", "a"], time=[None, 3, 3])
        with pytest.raises(TypeError, match="event time"):
            groups.update([0], ["x"])
        with pytest.raises(TypeError, match="cast it to one type"):
            groups.update([0], [1], time=[1])
    assert (first[0], last[0]) == ("a", "b")


@pytest.mark.parametrize("kind", ["string", "double", "int64"])
def test_rows_of_one_time_are_ordered_by_where_they_were_however_they_are_cut(kind: str) -> None:
    random = np.random.default_rng(5)
    rows, groups = 600, 4
    table = {
        "time": random.integers(0, 6, rows),
        "partition": random.integers(0, 3, rows),
        "offset": np.sort(random.integers(0, 300, rows)),  # exploded messages are several rows
        "group": random.integers(0, groups, rows),
    }
    values = pa.array(random.integers(0, 50, rows)).cast(kind)
    places = [(*(int(table[name][i]) for name in ("time", "partition", "offset")), i) for i in range(rows)]
    for cls, best in ((FirstGroups, min), (LastGroups, max)):
        rows_of = [best(p for p in places if table["group"][p[3]] == g)[3] for g in range(groups)]
        expected = values.take(rows_of).to_pylist()
        # Cuts between messages, each part by itself, merged in any order and shape.
        edges = [0, *np.searchsorted(table["offset"], [1, 40, 41, 150]).tolist(), rows]
        parts, whole = [], cls(groups)
        for low, high in itertools.pairwise(edges):
            more = {name: table[name][low:high] for name in ("time", "partition", "offset")}
            one = cls(groups)
            for some in (one, whole):
                some.update(table["group"][low:high], values[low:high], **more)
            parts.append(one.to_arrow())
        assert [whole[g] for g in range(groups)] == expected
        for order in itertools.permutations(parts, len(parts)):
            merged, pair = cls(groups), cls(groups)
            for part in order[:2]:
                pair.merge(np.arange(groups), part)
            for part in (pair.to_arrow(), *order[2:]):
                merged.merge(np.arange(groups), part)
            assert [merged[g] for g in range(groups)] == expected
            assert merged.to_arrow().equals(whole.to_arrow())


def test_arena_of_beaten_strings_is_compacted() -> None:
    last = LastGroups(3)
    for t in range(500):
        last.update([t % 3], ["x" * (t % 50) + str(t)], time=[t])
    assert [last[g] for g in range(3)] == ["x" * (t % 50) + str(t) for t in (498, 499, 497)]
    assert len(last._arena) < 1000


@pytest.mark.parametrize(
    ("cls", "column"),
    [
        (CountGroups, pa.array(["a"])),
        (MeanGroups, pa.array([1.0])),
        (MeanGroups, pa.array([{"n": -1, "sum": 1.0}])),
        (VarianceGroups, pa.array([{"n": 1, "mean": None, "m2": 1.0}])),
        (VarianceGroups, pa.array([{"n": 1, "sum": 1.0}])),
        (FirstGroups, pa.array([{"value": 1, "time": 1}])),
        (LastGroups, pa.array([1])),
    ],
)
def test_foreign_columns_are_refused(cls: type, column: pa.Array) -> None:
    with pytest.raises(SketchError):
        cls(1).merge([0], column)


def test_null_columns_merge_as_nothing() -> None:
    for cls in ALL:
        groups = cls(1)
        groups.merge([0], pa.nulls(1))
        assert groups[0] == (0 if cls is CountGroups else None)


@each(
    ("moment", "error", "words"),
    [
        ({"partition": 1 << 31}, ValueError, "partition must fit int32, got 2147483648"),
        ({"partition": pa.array(["0"]).dictionary_encode()}, TypeError, "partition must be whole numbers"),
        ({"offset": np.array([1 << 63], np.uint64)}, ValueError, "offset must fit int64"),
        ({"offset": [1.0]}, TypeError, "offset must be whole numbers, got double"),
        ({"offset": [1, 2]}, ValueError, "one a row, 1 in all, got 2"),
    ],
)
@each("kind", TIMED)
def test_a_place_that_kafka_has_not_is_refused(kind: Any, moment: Any, error: Any, words: str) -> None:
    groups = kind(1)
    with pytest.raises(error, match=words):
        groups.update([0], [1.5], time=[1], **{"offset": [1], "partition": 0, **moment})
    assert groups.to_arrow().to_pylist() == [None]
