"""HLL against the C++ reference's bytes, estimates and bounds, and against itself in every order and cut."""

from __future__ import annotations

import itertools
import json
import math
import pickle
import threading

import datasketches
import numba
import numpy as np
import pyarrow as pa
import pytest

from streamgauge.sketches.core.protocol import SketchError
from streamgauge.sketches.hll import HLL, HLLGroups
from streamgauge.sketches.hll.registers import power_sums

from ...cases import each

HLL_8 = datasketches.tgt_hll_type.HLL_8


def reference(lg_k: int, values: list, kind: object = HLL_8) -> datasketches.hll_sketch:
    sketch = datasketches.hll_sketch(lg_k, kind)
    for value in values:
        sketch.update(value)
    return sketch


def contents(sketch: HLL) -> list[int]:
    """Registers in order, or coupons sorted, whatever the image says of the way there."""
    image = np.frombuffer(sketch.to_bytes(), np.uint8)
    if image[0] == 10:
        return image[40:].tolist()
    return sorted(image[8 if image[0] == 2 else 12 :].view(np.uint32).tolist())


@each("lg_k", [4, 7, 8, 11, 12, 14])
@each("n", [0, 1, 7, 8, 20, 24, 25, 100, 384, 385, 1000, 30_000])
def test_bytes_and_estimates_are_the_references(lg_k: int, n: int) -> None:
    ours = HLL(lg_k).update(np.arange(n))
    theirs = reference(lg_k, list(range(n)))
    assert ours.to_bytes() == theirs.serialize_updatable()
    assert ours.estimate() == pytest.approx(theirs.get_estimate(), rel=1e-12)
    for std_devs in (1, 2, 3):
        lower, upper = ours.bounds(std_devs)  # whole numbers, rounded outwards, else not wider
        assert theirs.get_lower_bound(std_devs) - 1 <= lower <= ours.estimate()
        assert ours.estimate() <= upper <= theirs.get_upper_bound(std_devs) + 1


def test_strings_and_floats_are_counted_as_the_reference_does() -> None:
    texts = ["a" * n for n in range(1, 40)] + ["ü" * n for n in range(1, 40)] + ["1", "1.0"]
    assert HLL().update([*texts, "", None]).to_bytes() == reference(12, texts).serialize_updatable()
    numbers = [0.0, -0.0, 1.5, math.nan, math.inf, -math.inf, 5e-324, 1.7e308]
    assert HLL().update(numbers).to_bytes() == reference(12, numbers).serialize_updatable()
    many = [f"user-{i}" for i in range(5_000)]
    assert HLL(9).update(pa.array(many)).to_bytes() == reference(9, many).serialize_updatable()
    floats = np.random.default_rng(4).random(5_000)
    assert HLL(9).update(floats).to_bytes() == reference(9, floats.tolist()).serialize_updatable()


STREAMS = {
    "sorted": np.arange(20_000),
    "reversed": np.arange(20_000)[::-1],
    "constant": np.zeros(20_000, np.int64),
    "alternating extremes": np.array([-(2**63), 2**63 - 1] * 5_000),
    "heavy duplicates": np.arange(20_000) % 500,
    "unsigned above 2^63": np.arange(2**64 - 9_000, 2**64, dtype=np.uint64),
    "nulls": pa.array([None, 5, None, 7] * 1_000),
    "sliced": pa.array(np.arange(20_000)).slice(137, 9_000),
    "chunked": pa.chunked_array([np.arange(3_000), np.arange(2_000, 9_000), np.arange(0)]),
    "dictionary": pa.array(["ann", "bob", "cat"] * 2_000).dictionary_encode(),
    "booleans": np.array([True, False] * 100),
    "empty": np.arange(0),
    "lists": pa.array([[1, 2], None, [], [2, 3, None]] * 300),
    "unicode": pa.array([chr(c) for c in range(0x20, 0x3000)]),
    "empty strings": pa.array([""] * 1_000),
}


@each("name", STREAMS)
def test_any_cut_into_batches_is_the_same_as_one_value_at_a_time(name: str) -> None:
    column = STREAMS[name]
    whole = HLL(8).update(column)
    n = len(column)
    for size in (1_009, 4_096):
        parts = HLL(8)
        for start in range(0, n, size):
            parts.update(column[start : start + size])
        assert parts.to_bytes() == whole.to_bytes()
    singles = HLL(8)
    for value in column[:300]:
        singles.update(value.as_py() if isinstance(value, pa.Scalar) else value)
    assert singles.to_bytes() == HLL(8).update(column[:300]).to_bytes()


def test_the_promised_error_is_kept_and_not_hugely_loose() -> None:
    rng = np.random.default_rng(11)
    for n, merged in itertools.product((200, 3_000, 40_000), (False, True)):
        errors, inside = [], np.zeros(4, int)
        for _ in range(200):
            values = rng.integers(0, 1 << 62, n)
            half = n // 2 if merged else n
            sketch = HLL(10).update(values[:half]) | HLL(10).update(values[half:])
            errors.append(sketch.estimate() / n - 1)
            for std_devs in (1, 2, 3):
                lower, upper = sketch.bounds(std_devs)
                inside[std_devs] += lower <= n <= upper
        if n == 40_000:
            promised = (1.04 if merged else 0.833) / math.sqrt(1024)
            assert 0.85 * promised < np.std(errors) < 1.15 * promised
            assert abs(np.mean(errors)) < 3.5 * promised / math.sqrt(200)
        # at least the stated confidence, less three standard deviations of 200 trials
        assert (inside[1:] >= [116, 181, 196]).all()


@pytest.mark.parametrize("n", [0, 5, 30, 5_000])
def test_bytes_come_back(n: int) -> None:
    sketch = HLL(10).update(np.arange(n))
    for back in (HLL.from_bytes(sketch.to_bytes()), pickle.loads(pickle.dumps(sketch)), sketch.copy()):
        assert back.to_bytes() == sketch.to_bytes()
    assert contents(HLL.from_bytes(sketch.to_bytes("hll_4"))) == contents(sketch)


def test_a_copy_goes_its_own_way() -> None:
    sketch = HLL(8).update(np.arange(1_000))
    before = sketch.to_bytes()
    sketch.copy().update(np.arange(5_000))
    sketch | HLL(6).update(np.arange(9_000))
    assert sketch.to_bytes() == before


@pytest.mark.parametrize("lg_ks", [(12, 10, 12), (8, 12, 5), (11, 11, 11)])
@pytest.mark.parametrize("sizes", [(30_000, 30_000, 30_000), (5, 5_000, 90), (3, 40, 300)])
def test_merging_gives_the_same_registers_in_every_order(lg_ks: tuple, sizes: tuple) -> None:
    starts = np.cumsum([0, *sizes])
    parts = [HLL(lg).update(np.arange(a, a + n)) for lg, a, n in zip(lg_ks, starts, sizes)]
    merged = [a.copy().merge(b).merge(c) for a, b, c in itertools.permutations(parts)]
    whole = HLL(min(lg_ks)).update(np.arange(sum(sizes)))
    for sketch in [*merged, parts[0] | (parts[1] | parts[2])]:
        assert sketch.lg_k == min(lg_ks)
        assert contents(sketch) == contents(whole)
        lower, upper = sketch.bounds(3)
        assert lower <= sum(sizes) <= upper


@pytest.mark.parametrize("n", [0, 5, 90, 5_000])
def test_an_empty_sketch_lowers_no_other(n: int) -> None:
    sketch = HLL(14).update(np.arange(n))
    for empty in (HLL(4), HLL(21)):
        assert (sketch | empty).to_bytes() == sketch.to_bytes() or n == 0
        assert sketch.copy().merge(empty).to_bytes() == sketch.to_bytes()
        assert (sketch | empty) == (empty | sketch)
    groups = HLLGroups(1, 14)
    groups.merge([0, 0], pa.array([sketch.to_bytes(), HLL(4).to_bytes()]))
    assert groups[0].lg_k == 14


def test_a_union_answers_the_same_either_way_round() -> None:
    sizes = (0, 3, 7, 20, 24, 30, 90, 400)
    parts = [HLL(8).update(np.arange(1000 * i, 1000 * i + n)) for i, n in enumerate(sizes)]
    for one, other in itertools.product(parts, parts):
        assert (one | other).to_bytes() == (other | one).to_bytes()


def test_groups_are_single_sketches_side_by_side() -> None:
    rng = np.random.default_rng(5)
    values = rng.integers(0, 1 << 60, 50_000)
    numbers = rng.integers(0, 40, len(values)) ** 3 // 1500
    columns = [pa.array(values), pa.array(values.astype(float)), pa.array(values.astype(str))]
    for column, dtype in zip(columns, (np.int64, np.int32, np.uint8)):
        groups = HLLGroups(60, lg_k=9)
        groups.update(numbers.astype(dtype), column)
        singles = [HLL(9).update(column.filter(pa.array(numbers == g))) for g in range(60)]
        assert groups.to_arrow().to_pylist() == [single.to_bytes() for single in singles]
        assert groups.estimates().tolist() == [single.estimate() for single in singles]
        for std_devs in (1, 2, 3):
            bounds = np.stack(groups.bounds(std_devs), axis=1)
            assert bounds.tolist() == [list(single.bounds(std_devs)) for single in singles]
        assert groups[-1].to_bytes() == groups[59].to_bytes() == singles[59].to_bytes()
        again = HLLGroups(60, lg_k=9)
        again.merge(np.arange(60), groups.to_arrow())
        assert again.to_arrow() == groups.to_arrow()


@pytest.mark.parametrize("kind", [int, float, str])
def test_rows_brought_together_by_group_count_as_they_come(kind: type) -> None:
    rng = np.random.default_rng(21)
    numbers = rng.zipf(1.2, 60_000) % 150  # from registers that are full down to a coupon or two
    values = rng.integers(0, 30_000, 60_000).astype(kind)
    column = pa.array(np.where(values == "7", "", values)) if kind is str else values
    together, as_they_come = HLLGroups(150, lg_k=9), HLLGroups(150, lg_k=9)
    together.update(numbers, column)
    for start in range(0, len(values), 2000):  # fewer than 32 rows a group
        as_they_come.update(numbers[start : start + 2000], column[start : start + 2000])
    assert together.to_arrow().equals(as_they_come.to_arrow())
    before = together.to_arrow()
    with pytest.raises(IndexError, match="150 groups"):
        together.update(numbers + 1, column)
    assert together.to_arrow().equals(before)


def test_one_group_s_rows_need_no_bringing_together() -> None:
    """All rows of one group are given as an array of stride 0; they count as if each had its number."""
    values = np.random.default_rng(8).integers(0, 1 << 40, 50_000)
    collected = []
    for alike in (np.broadcast_to(np.int64(0), 50_000), np.zeros(50_000, np.int64)):
        groups = HLLGroups(1)
        for start in range(0, 50_000, 9_000):
            groups.update(alike[start : start + 9_000], values[start : start + 9_000])
        collected.append(groups.to_arrow())
    assert collected[0].equals(collected[1])
    for number in (1, -1):
        with pytest.raises(IndexError):
            HLLGroups(1).update(np.broadcast_to(np.int64(number), 9), values[:9])
    strings = pa.array(["a", None, "", "b"] * 100)
    groups = HLLGroups(1)
    groups.update(np.broadcast_to(np.int64(0), 400), strings)
    assert groups.to_arrow()[0].as_py() == HLL().update(strings).to_bytes()


def test_groups_merge_as_single_sketches_do() -> None:
    rng = np.random.default_rng(6)
    parts = [HLL(int(rng.integers(6, 12))).update(rng.integers(0, 1 << 60, int(10 ** rng.uniform(0, 4.5))))
             for _ in range(120)]  # fmt: skip
    numbers = rng.integers(0, 7, len(parts))
    column = pa.array([None if i % 11 == 0 else part.to_bytes() for i, part in enumerate(parts)], pa.binary())
    groups = HLLGroups(8, lg_k=11)
    groups.merge(numbers, column)
    for g in range(8):
        single = HLL(11)
        for i in np.flatnonzero(numbers == g):
            if i % 11:
                single.merge(parts[i])
        assert groups[g].lg_k == single.lg_k
        assert contents(groups[g]) == contents(single)
        assert groups[g].estimate() == single.estimate()


def test_groups_grow_and_refuse_numbers_they_have_not() -> None:
    groups = HLLGroups()
    assert len(groups) == 0 and len(groups.to_arrow()) == 0
    groups.update(np.array([], np.int64), [])
    groups.resize(3)
    groups.update([2, 0], pa.array([["a", "b"], ["a"]]))
    groups.resize(2)
    assert len(groups) == 3 and groups.estimates().round().tolist() == [1, 0, 2]
    for wrong in ([3], [-1], [2**40]):
        with pytest.raises(IndexError, match="3 groups"):
            groups.update(wrong, ["x"])
        with pytest.raises(IndexError, match="3 groups"):
            groups.merge(wrong, pa.array([HLL().to_bytes()]))
    with pytest.raises(ValueError, match="whole group numbers"):
        groups.update([0.5], ["x"])
    with pytest.raises(ValueError, match="one group number a row"):
        groups.update([0, 1], ["x"])
    with pytest.raises(IndexError):
        groups[3]
    with pytest.raises(TypeError, match="weight"):
        groups.update([0], ["x"], weight=[1])
    assert groups.estimates().round().tolist() == [1, 0, 2]


def test_a_group_that_has_seen_little_costs_little() -> None:
    n = 200_000
    groups = HLLGroups(n)
    groups.update(np.repeat(np.arange(n), 3), np.arange(3 * n))
    groups.update(np.zeros(5_000, np.int64), np.arange(5_000))
    size = sum(array.nbytes for array in groups._store)
    assert size < 100 * n
    assert groups.estimates()[1:].round().tolist() == [3] * (n - 1)


def test_two_sketches_are_updated_by_two_threads() -> None:
    values = np.random.default_rng(8).integers(0, 1 << 60, 300_000)
    sketches = [HLL(), HLL()]
    threads = [threading.Thread(target=sketch.update, args=(values,)) for sketch in sketches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sketches[0].to_bytes() == sketches[1].to_bytes() == HLL().update(values).to_bytes()


def test_answers_are_plain_values() -> None:
    sketch = HLL().update(np.arange(100_000))
    answer = json.loads(json.dumps(sketch.answer()))
    assert answer["lower"] < answer["estimate"] < answer["upper"]
    assert (answer["lower"], answer["upper"]) == sketch.bounds(2)
    assert "distinct" in repr(sketch) and "lg_k=12" in repr(sketch)


@pytest.mark.parametrize("lg_k", [3, 22, -1])
def test_an_impossible_size_is_refused(lg_k: int) -> None:
    with pytest.raises(SketchError, match="lg_k must be a whole number from 4 to 21"):
        HLL(lg_k)


def test_questions_that_have_no_answer_are_refused() -> None:
    with pytest.raises(ValueError, match="standard deviations"):
        HLL().bounds(4)
    with pytest.raises(ValueError, match="hll_6"):
        HLL().to_bytes("hll_6")
    with pytest.raises(SketchError, match="can't merge"):
        HLL().merge("sketch")
    with pytest.raises(SketchError, match="column of binary"):
        HLLGroups(1).merge([0], pa.array([5]))
    assert HLL().__or__(5) is NotImplemented


@pytest.mark.parametrize(
    ("size", "highest"), [(16, 0), (4096, 0), (4096, 19), (4096, 20), (8192, 3), (4096, 63)]
)
def test_inverse_powers_of_registers_add_up_exactly(size: int, highest: int) -> None:
    registers = np.random.default_rng(size).integers(0, highest + 1, size).astype(np.uint8)
    registers[0] = highest
    low, high = _power_sums(registers, np.uint8(highest))
    assert low == sum(2.0 ** -int(v) for v in registers if v < 32)
    assert high == sum(2.0 ** -int(v) for v in registers if v > 31)


@numba.njit
def _power_sums(registers, highest):
    return power_sums(registers, highest)
