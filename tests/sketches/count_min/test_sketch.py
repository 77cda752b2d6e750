"""Count-min against plain counts, its promise over many seeds, and Spark's own to the byte."""

from __future__ import annotations

import base64
import copy
import itertools
import math
import pickle
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.sketches.core.protocol import SketchError
from streamgauge.sketches.count_min import CountMin, CountMinGroups

from ...cases import each

Oracle = Callable[[str, list[str]], list[str]]
KINDS = ("long", "string", "binary")
SHAPES = (
    (0.001, 0.99, 0),
    (0.1, 0.9, 42),
    (0.37, 0.5, -1),
    (0.9, 0.999, 2**31 - 1),
    (0.03125, 0.75, -(2**31)),
)


def drawn(kind: str, n: int, seed: int = 1) -> list[Any]:
    ranks = np.arange(1, 1001) ** -1.2
    numbers = np.random.default_rng(seed).choice(1000, n, p=ranks / ranks.sum()) * 7_919_117_131 - 3
    limits = {-3: -(2**63), 7_919_117_128: 2**63 - 1, 15_838_234_259: -1, 23_757_351_390: 0}
    longs = [limits.get(x, x) for x in numbers.tolist()]
    if kind == "long":
        return longs
    texts = ["" if x == 0 else "日本é" if x == -1 else f"{x}"[: abs(x) % 17 + 1] for x in longs]
    return texts if kind == "string" else [text.encode() + b"\x80\xff"[: len(text) % 3] for text in texts]


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def words(kind: str, values: list[Any]) -> str:
    if kind == "long":
        return ",".join(map(str, values))
    return ",".join(b64(value if kind == "binary" else value.encode()) for value in values)


@pytest.mark.slow
@each("kind", KINDS)
@each("params", SHAPES)
def test_never_too_small_and_parts_merged_equal_the_whole(
    kind: str, params: tuple[float, float, int]
) -> None:
    values = drawn(kind, 3000)
    truth = Counter(values)
    whole = CountMin(*params).update(values)
    assert whole.total == 3000
    for value, n in truth.items():
        low, high = whole.bounds(value)
        assert n <= high == whole.estimate(value) and low <= high
    parts = [CountMin(*params).update(values[a:b]) for a, b in ((0, 10), (10, 2000), (2000, 3000))]
    for order in itertools.permutations(parts):
        merged = CountMin(*params)
        for part in order:
            merged |= part
        assert merged == whole
    assert (whole - parts[1]) == parts[0] | parts[2]
    again = CountMin(*params).update([values[0]] * 5 + values[1:], None)
    weighted = CountMin(*params).update(values, [5] + [1] * 2999)
    assert again == weighted


def test_the_promise_at_its_confidence() -> None:
    """Over seeds, at most a share of 1 − confidence of estimates is too large by more than eps · total."""
    values = np.random.default_rng(3).zipf(1.3, 20_000) % 100_003
    distinct, counts = np.unique(values, return_counts=True)
    wrong = requested = 0
    largest = 0.0
    for seed in range(60):
        sketch = CountMin(0.01, 0.9, seed).update(values)
        over = sketch.estimates(distinct) - counts
        assert over.min() >= 0
        wrong += int((over > sketch.error).sum())
        requested += len(over)
        largest = max(largest, float(over.max()))
    assert wrong / requested <= 1 - 0.9
    assert largest > 0.002 * len(values)  # the bound is not idle: collisions do happen


def test_longs_half_the_range_apart_always_meet_as_in_spark() -> None:
    for seed in range(10):
        assert CountMin(seed=seed).update([0, 5]).estimates([-(2**63), 5 - 2**63]).tolist() == [1, 1]


def test_conservative_update_is_closer_never_too_small_and_stands_alone() -> None:
    values = drawn("string", 5000)
    truth = Counter(values)
    plain = CountMin(0.05, 0.9).update(values)
    careful = CountMin(0.05, 0.9, conservative=True)
    for cut in np.array_split(np.arange(5000), 4):
        careful.update([values[i] for i in cut])
    distinct = list(truth)
    counts = np.array([truth[value] for value in distinct])
    ours, theirs = careful.estimates(distinct), plain.estimates(distinct)
    assert (ours >= counts).all() and (ours <= theirs).all() and ours.sum() < theirs.sum()
    one = CountMin(0.05, 0.9, conservative=True)
    for value in values[:300]:
        one.update(value, [2])
    assert one == CountMin(0.05, 0.9, conservative=True).update(values[:300], [2] * 300)
    for clash in (careful.merge, careful.subtract, careful.inner_product):
        with pytest.raises(SketchError, match="conservatively"):
            clash(plain)
    assert pickle.loads(pickle.dumps(careful)) == careful == careful.copy()
    with pytest.raises(SketchError, match="add up"):
        CountMin.from_bytes(careful.to_bytes())


def test_inner_product_bounds_the_join() -> None:
    a, b = drawn("string", 4000, 1), drawn("string", 2000, 2)
    left, right = Counter(a), Counter(b)
    join = sum(n * right[value] for value, n in left.items())
    for seed in range(5):
        x, y = CountMin(0.01, 0.99, seed).update(a), CountMin(0.01, 0.99, seed).update(b)
        assert join <= x.inner_product(y) <= join + x.eps * 4000 * 2000
        assert x.inner_product(y) == y.inner_product(x)
    huge = CountMin().update(["a"], [2**40])
    assert huge.inner_product(huge) == 2**80


def test_what_cannot_be() -> None:
    for params in ((0, 0.9, 0), (1, 0.9, 0), (0.1, 1, 0), (0.1, 0, 0), (0.1, 0.9, 2**31), (1e-9, 0.9, 0)):
        with pytest.raises(SketchError):
            CountMin(*params)
    with pytest.raises(SketchError, match="not floats"):
        CountMin().update([1.5])
    for weights in ([-1], [1, 2], [0.5]):
        with pytest.raises(ValueError, match="weight"):
            CountMin().update(["a"], weights)
    with pytest.raises(OverflowError):
        CountMin().update(["a", "b"], [2**62, 2**62])
    with pytest.raises(SketchError, match="different depth"):
        CountMin(seed=1).merge(CountMin(seed=2))
    with pytest.raises(SketchError, match="not a part"):
        CountMin().update(["a"]).subtract(CountMin().update(["b"]))
    with pytest.raises(ValueError, match="one value"):
        CountMin().estimate([1, 2])
    assert CountMin().update([]).update(None).update([["a", None], None]).total == 1
    assert CountMin().update(np.array([2**64 - 1], np.uint64)).estimate(-1) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_groups_equal_single_sketches(kind: str) -> None:
    values = drawn(kind, 9000)
    rng = np.random.default_rng(4)
    group = np.minimum(rng.zipf(1.2, 9000) - 1, 39).astype(np.int16)
    groups = CountMinGroups(40, eps=0.1, confidence=0.9, seed=5)
    groups._lazy.replay_at = 2000  # so that some groups have tables and others only lines of the log
    array = pa.array(values)
    weight = rng.integers(0, 9, 9000)
    for part in np.array_split(np.arange(9000), 6):
        groups.update(group[part], array.take(pa.array(part)), weight=weight[part])
    assert 0 < groups._lazy.used < 40
    single = [
        CountMin(0.1, 0.9, 5).update(array.filter(pa.array(group == g)), weight[group == g])
        for g in range(40)
    ]
    assert [groups[g] for g in range(40)] == single
    images = groups.to_arrow()
    assert images.to_pylist() == [sketch.to_bytes() for sketch in single]
    halved = CountMinGroups(20, eps=0.1, confidence=0.9, seed=5)
    halved.update(np.zeros(3, np.int64), array[:3])
    halved.merge(np.arange(41) % 20, pa.concat_arrays([images, pa.nulls(1, pa.binary())]))
    assert halved[7] == single[7] | single[27]
    assert halved[0] == single[0] | single[20] | CountMin(0.1, 0.9, 5).update(array[:3])
    halved.resize(21)
    assert halved[20] == CountMin(0.1, 0.9, 5)
    with pytest.raises(SketchError, match="depth, width and seed"):
        CountMinGroups(1, seed=6).merge(np.zeros(1, np.int64), images[:1])
    late = pa.concat_arrays([pa.nulls(2, pa.binary()), images[:1]])
    with pytest.raises(SketchError, match="row 2 "):
        CountMinGroups(1, seed=6).merge(np.zeros(3, np.int64), late)


def test_sparse_bytes_give_way_to_sparks_where_those_are_shorter() -> None:
    few, many = CountMin().update(list(range(48))), CountMin().update(np.arange(1_000_000))
    assert len(few.to_bytes()) < 1_500 and len(few.to_spark()) == 112_076
    assert many.to_bytes() == many.to_spark() + b"Z"  # the kind of its items, which Spark doesn't read
    for sketch in (CountMin(), few, many, few | many, CountMin(0.3, 0.6).update([1, 1])):
        for image in (sketch.to_bytes(), sketch.to_spark()):
            assert CountMin.from_bytes(image) == sketch


def test_many_small_sketches_merge_in_little_memory() -> None:
    values = np.arange(2_000 * 48)
    groups = CountMinGroups(2_000)
    groups.update(values // 48, values)
    images = groups.to_arrow()
    assert groups._lazy.used == 0 and images.nbytes < 3_000_000
    again = CountMinGroups(2_000)
    again.merge(np.arange(2_000), images)
    assert again._lazy.used == 0 and again._lazy.nbytes < 80_000_000
    assert again.to_arrow().equals(images)
    one = CountMinGroups(1)
    one.merge(np.zeros(2_000, np.int64), images)
    assert one[0] == CountMin().update(values)
    assert one.answers().to_pylist() == [one[0].answer()]
    assert again.answers().to_pylist()[7] == again[7].answer()


def test_groups_that_saw_little_cost_little() -> None:
    groups = CountMinGroups(100_000)
    groups.update(np.repeat(np.arange(100_000), 3), np.arange(300_000))
    assert groups._lazy.nbytes + groups._total.nbytes < 40_000_000
    assert groups[77].estimate(231) == 1


def test_every_truncation_and_every_flipped_byte() -> None:
    sketch = CountMin(0.05, 0.7, 3).update(["a", "b", "a"])
    assert CountMin.from_bytes(sketch.to_spark()) == CountMin.from_bytes(sketch.to_bytes()) == sketch
    for image in (sketch.to_spark(), sketch.to_bytes()):
        refuse_every_change(image)


def refuse_every_change(image: bytes) -> None:
    for size in range(len(image)):
        refuse(image, image[:size])
    refuse(image, image + b"\x00")
    for at, flip in itertools.product(range(len(image)), (0x01, 0x80, 0xFF)):
        broken = bytearray(image)
        broken[at] ^= flip
        refuse(image, bytes(broken))  # not one goes unseen: rows add up, factors come from a seed


def refuse(image: bytes, broken: bytes) -> None:
    """One sketch and many refuse the broken image in the same words; many have merged none of the column."""
    with pytest.raises(SketchError) as one:
        CountMin.from_bytes(broken)
    groups = CountMinGroups(2, 0.05, 0.7, 3)
    with pytest.raises(SketchError) as many:
        groups.merge(np.array([1, 0, 1]), pa.array([image, broken, image]))
    assert str(many.value) == str(one.value)
    assert groups[0] == groups[1] == CountMin(0.05, 0.7, 3)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_lie_in_the_log_beside_values_until_a_table_takes_both(kind: str) -> None:
    values, more = drawn(kind, 90), drawn(kind, 60, 2)
    part, whole = CountMin(0.01, 0.9, 2).update(more), CountMin(0.01, 0.9, 2).update(more).update(values)
    groups = CountMinGroups(3, 0.01, 0.9, 2)
    for images in (pa.array([part.to_bytes()]), pa.array([part.to_spark()])):
        groups = CountMinGroups(3, 0.01, 0.9, 2)
        groups.update(np.ones(90, np.int64), values)
        groups.merge(np.array([1]), images)
        groups.merge(np.array([2, 0]), pa.array([part.to_bytes(), CountMin(0.01, 0.9, 2).to_spark()]))
        expected = [CountMin(0.01, 0.9, 2), whole, part]
        assert [groups[g] for g in range(3)] == expected
        assert groups.to_arrow().to_pylist() == [one.to_bytes() for one in expected]
        groups._lazy.give(np.array([1, 2]))
        assert groups._lazy.lines == 0 and [groups[g] for g in range(3)] == expected
        assert groups.to_arrow().to_pylist() == [one.to_bytes() for one in expected]


def test_weights_that_add_up_to_too_much_are_refused_as_images_too() -> None:
    heavy = CountMin(0.1, 0.9).update(["a"], [1 << 61])
    for image in (heavy.to_bytes(), heavy.to_spark()):
        groups = CountMinGroups(1, 0.1, 0.9)
        with pytest.raises(OverflowError, match="2\\^62"):
            groups.merge(np.zeros(2, np.int64), pa.array([image, image]))
        assert groups[0] == CountMin(0.1, 0.9)


def test_one_row_keeps_its_seed_though_several_give_its_function() -> None:
    wrong = []
    for confidence, seed, eps in itertools.product(
        (0.05, 0.4, 0.5), (9, -3, 77_777, -(2**31)), (0.9, 0.1, 0.01)
    ):
        for values in ([], ["a"], drawn("string", 900), drawn("long", 900)):
            for conservative in (False, True):
                sketch = CountMin(eps, confidence, seed, conservative).update(values)
                image = sketch.to_bytes()
                read = CountMin.from_bytes(image, conservative)
                copies = read, pickle.loads(pickle.dumps(sketch)), sketch.copy(), copy.deepcopy(sketch)
                if any(one.seed != seed or one != sketch or one.to_bytes() != image for one in copies):
                    wrong.append((eps, confidence, seed, len(values), conservative))
            groups = CountMinGroups(2, eps, confidence, seed)
            groups.update(np.ones(len(values), np.int64), values)
            images = groups.to_arrow()
            again = CountMinGroups(2, eps, confidence, seed)
            again.merge(np.arange(2), images)
            plain = CountMin(eps, confidence, seed), CountMin(eps, confidence, seed).update(values)
            if images.to_pylist() != [one.to_bytes() for one in plain] or again.to_arrow() != images:
                wrong.append((eps, confidence, seed, len(values), "groups"))
    assert not wrong


@pytest.mark.parametrize("eps", [0.9, 0.4, 0.004])
def test_seeds_with_the_same_function_merge_and_are_equal(eps: float) -> None:
    # One row's factor comes from several seeds, and Spark's bytes don't say which.
    made = CountMin(eps, 0.5, 9).update(["a", "b", "a"])
    read = CountMin.from_bytes(made.to_spark())
    assert read.seed != 9 and read == made and read.to_spark() == made.to_spark()
    assert (made | read).seed == 9 and (read | made) == (made | read)
    assert (made - read).total == 0 and made.inner_product(read) == made.inner_product(made)
    assert CountMin.from_bytes(read.to_bytes()).seed == read.seed
    images = pa.array([made.to_bytes(), read.to_bytes(), made.to_spark()])
    for seed in (9, read.seed):
        groups = CountMinGroups(2, eps, 0.5, seed)
        groups.merge(np.array([0, 1, 0]), images)
        assert groups[0] == made | made and groups[1] == made and groups[1].seed == seed
    other = CountMin(eps, 0.5, 10).update(["a"])
    assert other != made
    with pytest.raises(SketchError, match="different depth, width and seed"):
        made.merge(other)
    groups = CountMinGroups(1, eps, 0.5, 10)
    for image in images.to_pylist():
        with pytest.raises(SketchError, match="depth, width and seed"):
            groups.merge(np.array([0]), pa.array([image]))
    assert groups[0].total == 0


def test_a_seed_that_does_not_give_the_function_is_refused() -> None:
    sketch = CountMin(0.9, 0.5, 9).update([1, 2])
    image = sketch.to_bytes()
    assert len(image) == len(sketch.to_spark()) + 5
    assert CountMin.from_bytes(image[:-4]) == sketch  # as it was written before
    for at in range(len(image) - 5, len(image)):
        for flip in (1, 0x80, 0xFF):
            broken = bytearray(image)
            broken[at] ^= flip
            with pytest.raises(SketchError) as one:
                CountMin.from_bytes(bytes(broken))
            with pytest.raises(SketchError) as many:
                CountMinGroups(1, 0.9, 0.5, 9).merge(np.array([0, 0]), pa.array([image, bytes(broken)]))
            assert str(many.value) == str(one.value)


@pytest.mark.slow
@pytest.mark.spark
def test_equal_to_sparks_own_to_the_byte(java_oracle: Oracle) -> None:
    cases = list(itertools.product(KINDS, SHAPES, (1, 900)))
    lines = [f"build {k} {p[0]} {p[1]} {p[2]} {words(k, drawn(k, n))}" for k, p, n in cases]
    images = java_oracle("CountMinOracle", lines)
    for (kind, params, n), image in zip(cases, images, strict=True):
        ours = CountMin(*params).update(drawn(kind, n))
        assert ours.to_spark() == base64.b64decode(image)
        assert CountMin.from_bytes(base64.b64decode(image)) == ours
    requested = {kind: [*dict.fromkeys(drawn(kind, 2000, 8))] for kind in KINDS}
    answers = java_oracle(
        "CountMinOracle",
        [f"ask {k} {image} {words(k, requested[k])}" for (k, *_), image in zip(cases, images)],
    )
    for (kind, _, n), image, answer in zip(cases, images, answers, strict=True):
        total, *estimates = map(int, answer.split())
        ours = CountMin.from_bytes(base64.b64decode(image))
        assert total == n == ours.total and estimates == ours.estimates(requested[kind]).tolist()
    merged = java_oracle("CountMinOracle", [f"merge {images[0]} {images[1]}"])[0]
    both = CountMin.from_bytes(base64.b64decode(images[0])) | CountMin.from_bytes(base64.b64decode(images[1]))
    assert both.to_spark() == base64.b64decode(merged)


@pytest.mark.spark
def test_equal_to_spark_sql(spark: Any) -> None:
    for kind in KINDS:
        table = pa.table({"x": drawn(kind, 500)})
        row = spark.createDataFrame(table).selectExpr("count_min_sketch(x, 0.05D, 0.9D, 7) AS s").collect()[0]
        assert bytes(row.s) == CountMin(0.05, 0.9, 7).update(table["x"]).to_spark()
        assert math.isclose(CountMin.from_bytes(bytes(row.s)).eps, 0.05)
