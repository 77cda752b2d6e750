"""Theta: pure functions of sets of values, so sets in Python are the naive version."""

from __future__ import annotations

import itertools
import json
import math
import pickle
import threading
from typing import Any

import datasketches
import numpy as np
import pyarrow as pa
import pytest

from streamgauge.sketches.core.protocol import SketchError
from streamgauge.sketches.theta import Theta, ThetaGroups

from ...cases import each


def test_counts_are_exact_up_to_its_size() -> None:
    for n in (0, 1, 6, 7, 1_000, 4_096):
        sketch = Theta().update(np.arange(n)).update(np.arange(n))
        assert sketch.estimate() == n and sketch.theta == 1.0
        assert sketch.bounds(1) == sketch.bounds(3) == (n, n)
    assert Theta().update(np.arange(4_097)).theta < 1


def test_the_cpp_reference_says_the_same() -> None:
    for lg_k, n in ((5, 2_000), (8, 300), (12, 30_000)):
        theirs = datasketches.update_theta_sketch(lg_k)
        for value in range(n):
            theirs.update(value)
        theirs.trim()
        ours = Theta(lg_k).update(np.arange(n))
        assert (
            datasketches.compact_theta_sketch.deserialize(ours.to_bytes()).get_estimate() == ours.estimate()
        )
        assert Theta.from_bytes(theirs.compact().serialize(), lg_k).to_bytes() == ours.to_bytes()
        assert ours.estimate() == theirs.get_estimate()
        for std_devs in (1, 2, 3):
            bounds = theirs.get_lower_bound(std_devs), theirs.get_upper_bound(std_devs)
            assert ours.bounds(std_devs) == pytest.approx(bounds, rel=1e-12)


STREAMS = {
    "sorted": np.arange(9_000),
    "reversed": np.arange(9_000)[::-1],
    "constant": np.zeros(9_000, np.int64),
    "heavy duplicates": np.arange(20_000) % 500,
    "alternating extremes": np.array([-(2**63), 2**63 - 1] * 5_000),
    "unsigned above 2^63": np.arange(2**64 - 9_000, 2**64, dtype=np.uint64),
    "floats": np.arange(9_000) / 7,
    "odd floats": np.array([0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf] * 100),
    "nulls": pa.array([None, 5, None, 7] * 1_000),
    "sliced": pa.array(np.arange(20_000)).slice(137, 9_000),
    "chunked": pa.chunked_array([np.arange(3_000), np.arange(2_000, 9_000), np.arange(0)]),
    "dictionary": pa.array(["ann", "bob", "cat"] * 2_000).dictionary_encode(),
    "empty": np.arange(0),
    "lists": pa.array([[1, 2], None, [], [2, 3, None]] * 300),
    "unicode": pa.array([chr(c) for c in range(0x20, 0x3000)]),
    "empty strings": pa.array([""] * 1_000),
}


@each("name", STREAMS)
def test_neither_order_nor_cuts_nor_merges_change_a_byte(name: str) -> None:
    column = STREAMS[name]
    whole = Theta(8).update(column)
    image = whole.to_bytes()
    assert Theta(8).update(column[::-1] if isinstance(column, np.ndarray) else column).to_bytes() == image
    for size in (997, 4_096):
        parts = [column[start : start + size] for start in range(0, len(column), size)]
        one_by_one, merged = Theta(8), Theta(8)
        for part in parts:
            one_by_one.update(part)
            merged.merge(Theta(8).update(part))
        assert one_by_one.to_bytes() == merged.to_bytes() == image
    assert (whole | whole).to_bytes() == image


def test_empty_strings_are_not_seen() -> None:
    assert Theta().update(["", None]).to_bytes() == Theta().to_bytes()
    assert Theta().update(["", "a"]).to_bytes() == Theta().update("a").to_bytes()


@pytest.mark.parametrize("sizes", [(30_000, 30_000, 9_000), (5, 5_000, 90), (3, 0, 300)])
def test_merging_is_associative_and_commutative(sizes: tuple) -> None:
    for lg_ks in ((9, 9, 9), (9, 7, 11)):
        starts = np.cumsum([0, *sizes]) * 4 // 5  # they overlap
        ranges = [np.arange(a, a + n) for a, n in zip(starts, sizes)]
        parts = [Theta(lg).update(values) for lg, values in zip(lg_ks, ranges)]
        smallest = min(lg_k for lg_k, size in zip(lg_ks, sizes) if size)  # an empty one lowers no other
        image = Theta(smallest).update(np.concatenate(ranges)).to_bytes()
        for a, b, c in itertools.permutations(parts):
            assert ((a | b) | c).to_bytes() == (a | (b | c)).to_bytes() == image
            assert (a | b | c).lg_k == smallest


def test_differences_are_as_exact_as_what_they_are_taken_from() -> None:
    large = Theta(14).update(np.arange(9_000))
    assert (large - Theta(4)).to_bytes() == large.to_bytes() == (large | Theta(4)).to_bytes()
    assert (large - Theta(4).update(np.arange(9))).estimate() == 8_991
    assert (Theta(4) | large).to_bytes() == large.to_bytes()


def test_exact_sets_are_sets() -> None:
    a, b = set(range(700)), set(range(400, 1_500))
    x, y = Theta().update(list(a)), Theta().update(list(b))
    empty = Theta()
    for ours, naive in (
        (x | y, a | b), (x & y, a & b), (x - y, a - b), (y - x, b - a),
        (x & empty, set()), (empty & x, set()), (x - empty, a), (empty - x, set()),
        (x - x, set()), (x | empty, a),
    ):  # fmt: skip
        assert ours.to_bytes() == Theta().update(list(naive)).to_bytes() and ours.estimate() == len(naive)
    assert x.jaccard(y) == (len(a & b) / len(a | b),) * 3
    assert x.jaccard(x.copy()) == (1, 1, 1) and empty.jaccard(empty) == (1, 1, 1)
    assert x.jaccard(empty) == empty.jaccard(x) == (0, 0, 0)


def test_the_promised_error_is_kept_and_not_hugely_loose() -> None:
    rng = np.random.default_rng(13)
    errors, inside, common, jaccards = [], np.zeros(4, int), 0, 0
    n, trials = 20_000, 200
    for _ in range(trials):
        values = rng.integers(0, 1 << 62, n + n // 2)
        a, b = Theta(9).update(values[:n]), Theta(9).update(values[n // 2 :])
        errors.append(a.estimate() / n - 1)
        for std_devs in (1, 2, 3):
            lower, upper = a.bounds(std_devs)
            inside[std_devs] += lower <= n <= upper
        lower, upper = (a & b).bounds(2)
        common += lower <= n / 2 <= upper
        lower, estimate, upper = a.jaccard(b)
        assert lower < estimate < upper
        jaccards += lower <= 1 / 3 <= upper
    promised = 1 / math.sqrt(511)
    assert 0.85 * promised < np.std(errors) < 1.15 * promised
    assert abs(np.mean(errors)) < 3.5 * promised / math.sqrt(trials)
    assert (inside[1:] >= [116, 181, 196]).all() and inside[1] < 160
    assert common >= 181 and jaccards >= 181


@pytest.mark.slow
def test_jaccard_bounds_hold_where_samples_are_equal_or_have_nothing_in_common() -> None:
    rng, size, trials = np.random.default_rng(31), 6_000, 250
    wrong = []
    for name, first, end in (
        ("all but one", 1, size),
        ("all but three", 3, size),
        ("all but thirty", 30, size),
        ("ten more", 0, size + 10),
        ("a tenth, contained", 0, size // 10),
        ("half, contained", size // 2, size),
        ("nothing", size, 2 * size),
        ("one", size - 1, 2 * size - 1),
        ("all", 0, size),
    ):
        true = (min(end, size) - first) / max(end, size)
        held = 0
        for _ in range(trials):
            values = rng.integers(0, 1 << 62, 2 * size)
            a, b = Theta(9).update(values[:size]), Theta(9).update(values[first:end])
            lower, estimate, upper = a.jaccard(b)
            assert b.jaccard(a) == (lower, estimate, upper) and 0 <= lower <= estimate <= upper <= 1
            held += lower <= true <= upper and (lower, upper) != (true, true)
        if held < 0.93 * trials:
            wrong.append((name, held / trials))
    assert not wrong


def test_equal_samples_are_equal_sets_only_where_all_is_kept() -> None:
    exact, larger = Theta(9).update(np.arange(512)), Theta(9).update(np.arange(9_000))
    assert exact.jaccard(exact.copy()) == larger.jaccard(larger) == (1, 1, 1)
    lower, estimate, upper = larger.jaccard(larger.copy())
    assert 0.98 < lower < 1 and estimate == upper == 1
    nothing_left = larger - larger
    assert Theta().jaccard(nothing_left) == nothing_left.jaccard(Theta()) == (0, 0.5, 1)


def test_an_empty_set_gives_no_size_on_either_side() -> None:
    for lg_k in (5, 14):
        empty, full = Theta(lg_k), Theta(9).update(np.arange(9))
        assert (empty & full).lg_k == (full & empty).lg_k == 9
        assert (empty & Theta(9)).lg_k == (Theta(9) & empty).lg_k == min(lg_k, 9)
        read = Theta.from_bytes(empty.to_bytes())
        assert (read & full) == (full & read) == (read | full) - full


def test_groups_are_single_sketches_side_by_side() -> None:
    rng = np.random.default_rng(5)
    values = rng.integers(0, 1 << 60, 50_000)
    numbers = rng.integers(0, 40, len(values)) ** 3 // 1500
    columns = [pa.array(values), pa.array(values.astype(float)), pa.array(values.astype(str))]
    for column, dtype in zip(columns, (np.int64, np.int32, np.uint8)):
        groups = ThetaGroups(60, lg_k=7)
        groups.update(numbers.astype(dtype), column)
        singles = [Theta(7).update(column.filter(pa.array(numbers == g))) for g in range(60)]
        assert groups.to_arrow().to_pylist() == [single.to_bytes() for single in singles]
        assert groups.estimates().tolist() == [single.estimate() for single in singles]
        for std_devs in (1, 2, 3):
            bounds = np.stack(groups.bounds(std_devs), axis=1)
            assert bounds.tolist() == [list(single.bounds(std_devs)) for single in singles]
        assert groups[-1].to_bytes() == groups[59].to_bytes() == singles[59].to_bytes()
        assert groups[0].lg_k == 7
        again = ThetaGroups(60, lg_k=7)
        again.merge(np.arange(60), groups.to_arrow())
        assert again.to_arrow() == groups.to_arrow()


def test_groups_unite_images_of_any_size() -> None:
    rng = np.random.default_rng(6)
    values = [rng.integers(0, 30_000, int(10 ** rng.uniform(0, 4.5))) for _ in range(90)]
    numbers = rng.integers(0, 7, len(values))
    images = [Theta(int(rng.integers(8, 12))).update(part).to_bytes() for part in values]
    column = pa.array([None if i % 11 == 0 else image for i, image in enumerate(images)], pa.binary())
    groups = ThetaGroups(8, lg_k=8)
    groups.merge(numbers, column)
    for g in range(8):
        mine = [part for i, part in enumerate(values) if i % 11 and numbers[i] == g]
        assert groups[g].to_bytes() == Theta(8).update(np.concatenate(mine) if mine else []).to_bytes()


def test_groups_grow_and_refuse_numbers_they_have_not() -> None:
    groups = ThetaGroups()
    assert len(groups) == 0 and len(groups.to_arrow()) == 0
    groups.update(np.array([], np.int64), [])
    groups.resize(3)
    groups.update([2, 0], pa.array([["a", "b"], ["a"]]))
    groups.resize(2)
    assert len(groups) == 3 and groups.estimates().tolist() == [1, 0, 2]
    for wrong in ([3], [-1], [2**40]):
        with pytest.raises(IndexError, match="3 groups"):
            groups.update(wrong, ["x"])
        with pytest.raises(IndexError, match="3 groups"):
            groups.merge(wrong, pa.array([Theta().to_bytes()]))
    with pytest.raises(ValueError, match="whole group numbers"):
        groups.update([0.5], ["x"])
    with pytest.raises(ValueError, match="one group number a row"):
        groups.update([0, 1], ["x"])
    with pytest.raises(IndexError):
        groups[3]
    with pytest.raises(TypeError, match="weight"):
        groups.update([0], ["x"], weight=[1])
    with pytest.raises(SketchError, match="row 1 "):
        groups.merge([0, 1], pa.array([Theta().to_bytes(), b"theta"]))
    assert groups.estimates().tolist() == [1, 0, 2]


def test_a_group_that_has_seen_little_costs_little() -> None:
    n = 100_000
    groups = ThetaGroups(n)
    groups.update(np.repeat(np.arange(n), 3), np.arange(3 * n))
    groups.update(np.zeros(9_000, np.int64), np.arange(9_000))
    assert (
        groups._store.extent["used"][0] * 8 < 70 * n
    )  # the used part of the arena: 64 bytes a group and one table
    assert groups.estimates()[1:].tolist() == [3] * (n - 1)


def test_repeats_take_no_room() -> None:
    groups = ThetaGroups(2)
    groups.update(np.repeat([0, 1], 50_000), np.arange(100_000) % 5)
    assert groups._store.sketches["room"].max() <= 16
    assert groups.estimates().tolist() == [5, 5]


def test_bytes_copies_and_pickles_come_back() -> None:
    for n in (0, 1, 5, 900, 30_000):
        sketch = Theta(9).update(np.arange(n))
        for back in (
            Theta.from_bytes(sketch.to_bytes(), 9),
            pickle.loads(pickle.dumps(sketch)),
            sketch.copy(),
        ):
            assert back.to_bytes() == sketch.to_bytes() and back.lg_k == 9
            assert back.update(np.arange(n, 2 * n)).to_bytes() == Theta(9).update(np.arange(2 * n)).to_bytes()
        assert sketch.to_bytes() == Theta(9).update(np.arange(n)).to_bytes()


def test_a_sketch_read_without_its_size_takes_the_others() -> None:
    large = Theta(14).update(np.arange(100_000))
    small = Theta(14).update(np.arange(100_000, 106_000))
    read = Theta.from_bytes(small.to_bytes())
    whole = Theta(14).update(np.arange(106_000)).to_bytes()
    assert read.lg_k == 13  # what 6,000 entries need
    assert (large | read).to_bytes() == (read | large).to_bytes() == whole
    assert (read | large).lg_k == 14
    assert (read | Theta.from_bytes(Theta().update(5).to_bytes())).lg_k == 13


def test_two_sketches_are_updated_by_two_threads() -> None:
    values = np.random.default_rng(8).integers(0, 1 << 60, 300_000)
    sketches = [Theta(), Theta()]
    threads = [threading.Thread(target=sketch.update, args=(values,)) for sketch in sketches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sketches[0].to_bytes() == sketches[1].to_bytes() == Theta().update(values).to_bytes()


def test_answers_are_plain_values() -> None:
    sketch = Theta().update(np.arange(100_000))
    answer = json.loads(json.dumps(sketch.answer()))
    assert answer["lower"] < answer["estimate"] < answer["upper"]
    assert (answer["lower"], answer["upper"]) == sketch.bounds(2)
    assert "distinct" in repr(sketch) and "lg_k=12" in repr(sketch)


def test_what_has_no_answer_is_refused() -> None:
    for lg_k in (3, 27):
        with pytest.raises(SketchError, match="lg_k must be a whole number from 4 to 26"):
            Theta(lg_k)
    with pytest.raises(ValueError, match="standard deviations"):
        Theta().bounds(0)
    other: Any = "sketch"
    for call in (Theta().merge, Theta().jaccard):
        with pytest.raises(SketchError, match="Theta: can't"):
            call(other)
    for operator in ("__and__", "__sub__", "__or__"):
        assert getattr(Theta(), operator)(other) is NotImplemented
    with pytest.raises(SketchError, match="column of binary"):
        ThetaGroups(1).merge([0], pa.array([5]))
