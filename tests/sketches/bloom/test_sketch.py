"""Bloom filters: nothing added is missed, little else is found, and Spark's are equal to the byte."""

from __future__ import annotations

import base64
import itertools
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.sketches.bloom import Bloom, BloomGroups
from streamgauge.sketches.core.protocol import SketchError

from ...cases import each

Oracle = Callable[[str, list[str]], list[str]]
LAYOUTS = ("blocked", "spark_v1", "spark_v2")
KINDS = ("long", "string", "binary")


def drawn(kind: str, n: int, start: int = 0) -> list[Any]:
    """`n` different values."""
    longs = [-(2**63), 2**63 - 1, -1, 0] if start == 0 else []
    longs = (longs + [(start + i) * 1_234_567_891 + 5 for i in range(n)])[:n]
    if kind == "long":
        return longs
    texts = ["" if x == 0 else f"日本{x}" if x < 0 else str(x) for x in longs]
    return texts if kind == "string" else [text.encode() + b"\xff" for text in texts]


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def words(kind: str, values: list[Any]) -> str:
    if kind == "long":
        return ",".join(map(str, values))
    return ",".join(b64(value if kind == "binary" else value.encode()) for value in values)


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", KINDS)
def test_all_added_are_found_and_parts_merged_equal_the_whole(layout: Any, kind: str) -> None:
    values = drawn(kind, 500)
    whole = Bloom(500, 0.02, layout).update(values)
    assert whole.contains(values).all()
    assert values[3] in whole
    parts = [Bloom(500, 0.02, layout).update(values[a:b]) for a, b in ((0, 1), (1, 300), (250, 500))]
    for order in itertools.permutations(parts):
        merged = Bloom(500, 0.02, layout)
        for part in order:
            merged |= part
        assert merged == whole
    assert pickle.loads(pickle.dumps(whole)) == whole
    common = parts[1].copy().intersect(parts[2])
    assert common.contains(values[250:300]).all() and common.rate <= parts[1].rate
    assert Bloom(500, 0.02, layout) == Bloom(500, 0.02, layout).update([]).update(None).update([None])


@each("layout", LAYOUTS)
@each(("capacity", "fpp"), [(20_000, 0.01), (3_000, 0.1), (30_000, 0.001), (1_000, 0.5)])
def test_false_positives_keep_the_promise_and_are_not_far_below(
    layout: Any, capacity: int, fpp: float
) -> None:
    """Over 20 seeds (one for version 1, which has none) and 100,000 absent values each."""
    result = rate = requested = 0.0
    seeds = range(20) if layout != "spark_v1" else range(1)
    for seed in seeds:
        bloom = Bloom(capacity, fpp, layout, seed).update(np.arange(capacity))
        result += int(bloom.contains(np.arange(10**9, 10**9 + 100_000)).sum())
        rate += bloom.rate * 100_000
        requested += 100_000
        assert abs(bloom.count() - capacity) < 0.05 * capacity + 30
    noise = 4 * math.sqrt(fpp * requested)
    assert fpp * requested * 0.75 - noise < result < fpp * requested * 1.02 + noise
    assert abs(result - rate) < noise


def test_admitting_drops_duplicates() -> None:
    values = np.random.default_rng(1).integers(0, 4000, 20_000)
    bloom = Bloom(4000, 0.01)
    new = np.concatenate([bloom.admit(part) for part in np.array_split(values, 7)])
    first = np.zeros(len(values), bool)
    first[np.unique(values, return_index=True)[1]] = True
    assert not (new & ~first).any()  # a repeated value never passes
    assert (first & ~new).sum() < 0.01 * first.sum()  # few new ones are turned away
    assert bloom == Bloom(4000, 0.01).update(values)


def test_what_can_be_added_and_what_not() -> None:
    floats = Bloom().update([0.0, math.nan, 1.5])
    assert floats.contains([-0.0, math.nan, 1.5, 2.5]).tolist() == [True, True, True, False]
    assert Bloom().update([["a", None], None, ["b"]]).contains(["a", "b", "c"]).tolist() == [
        True,
        True,
        False,
    ]
    with pytest.raises(TypeError, match="not floats"):
        Bloom(layout="spark_v2").update([1.5])
    for bad in (
        {"capacity": 0},
        {"fpp": 0},
        {"fpp": 1},
        {"layout": "classic"},
        {"layout": "spark_v1", "seed": 1},
        {"seed": 2**31},
        {"capacity": 10**12},
    ):
        with pytest.raises(SketchError):
            Bloom(**bad)
    for other in (Bloom(10), Bloom(seed=1), Bloom(layout="spark_v2"), 3):
        with pytest.raises(SketchError, match="can't merge"):
            Bloom().merge(other)
    full = Bloom(1, 0.5).update(np.arange(10_000))
    assert full.count() == math.inf and full.rate == 1.0 and full.answer() == {"count": None, "rate": 1.0}
    assert "rate 100.00%" in repr(full)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_groups_equal_single_filters(layout: Any) -> None:
    rng = np.random.default_rng(4)
    values = pa.array(drawn("string", 6000))
    group = np.minimum(rng.zipf(1.2, 6000) - 1, 39)
    groups = BloomGroups(40, 300, 0.05, layout)
    groups._lazy.replay_at = 2000  # so that some groups have filters and others only lines of the log
    for part in np.array_split(np.arange(6000), 6):
        groups.update(group[part], values.take(pa.array(part)))
    assert 0 < groups._lazy.used < 40
    single = [Bloom(300, 0.05, layout).update(values.filter(pa.array(group == g))) for g in range(40)]
    assert [groups[g] for g in range(40)] == single
    images = groups.to_arrow()
    assert images.to_pylist() == [bloom.to_bytes() for bloom in single]
    halved = BloomGroups(20, 300, 0.05, layout)
    halved.update([0], values[:1])
    halved.merge(np.arange(41) % 20, pa.concat_arrays([images, pa.nulls(1, pa.binary())]))
    assert halved[7] == single[7] | single[27]
    assert halved[0] == single[0] | single[20] | Bloom(300, 0.05, layout).update(values[:1])
    new = halved.admit([3, 3, 4], ["fresh", "fresh", "fresh"])
    assert new.tolist() == [True, False, True]
    halved.resize(21)
    assert halved[20] == Bloom(300, 0.05, layout)
    with pytest.raises(SketchError, match="row 0 is of shape"):
        BloomGroups(1, 1000, 0.05, layout).merge(np.zeros(1, np.int64), images[:1])
    late = pa.concat_arrays([pa.nulls(2, pa.binary()), images[:1]])
    with pytest.raises(SketchError, match="row 2 is of shape"):
        BloomGroups(1, 1000, 0.05, layout).merge(np.zeros(3, np.int64), late)


def test_groups_that_saw_little_cost_little() -> None:
    groups = BloomGroups(100_000)
    groups.update(np.repeat(np.arange(100_000), 3), np.arange(300_000))
    assert groups._lazy.nbytes < 25_000_000
    assert 231 in groups[77] and 231 not in groups[78]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_truncation_and_every_flipped_byte(layout: Any) -> None:
    image = Bloom(20, 0.1, layout).update(["a", "b"]).to_bytes()
    for broken in (*(image[:size] for size in range(len(image))), image + b"\x00"):
        assert not accepts(image, broken, layout)
    survived = 0
    for at, flip in itertools.product(range(len(image)), (0x01, 0x80, 0xFF)):
        changed = bytearray(image)
        changed[at] ^= flip
        if accepts(image, bytes(changed), layout):
            survived += 1
            bloom = Bloom.from_bytes(bytes(changed))
            assert Bloom.from_bytes(bloom.to_bytes()) == bloom
            bloom.update(["a"]).contains(["a", "zz"])
    assert (survived == 0) == (layout == "blocked")  # ours has a check sum; Spark's words may be any


def accepts(image: bytes, broken: bytes, layout: Any) -> bool:
    """Whether it is read as a filter; many filters take it too if it is of their shape, and refuse it else.

    What is wrong with the bytes they say in the same words. A column that is refused has changed nothing.
    """
    mine = Bloom.from_bytes(image)
    groups = BloomGroups(2, 20, 0.1, layout)
    refused = ""
    try:
        groups.merge(np.array([1, 0, 1]), pa.array([image, broken, image]))
    except SketchError as error:
        refused = str(error)
    assert groups[1] == (Bloom(20, 0.1, layout) if refused else mine)
    try:
        one = Bloom.from_bytes(broken)
    except SketchError as error:
        assert refused == str(error)
        return False
    alike = (one.layout, one.seed, one._k, len(one._words)) == (layout, 0, mine._k, len(mine._words))
    assert (groups[0] == one) if alike else (refused.startswith("bloom: row 1 is of shape"))
    return True


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.apart
def test_equal_to_sparks_own_to_the_byte(java_oracle: Oracle) -> None:
    shapes = ((1000, 0.03, 0), (7, 0.5, 0), (400, 0.0001, 0), (1000, 0.03, 42), (64, 0.2, -(2**31)))
    cases = [
        (version, kind, *shape)
        for version, kind, shape in itertools.product((1, 2), KINDS, shapes)
        if version == 2 or shape[2] == 0
    ]
    lines = [f"build V{v} {k} {c} {f} {s} {words(k, drawn(k, 300))}" for v, k, c, f, s in cases]
    images = java_oracle("BloomOracle", lines)
    ours = []
    for (version, kind, capacity, fpp, seed), image in zip(cases, images, strict=True):
        layout: Any = f"spark_v{version}"
        ours.append(Bloom(capacity, fpp, layout, seed).update(drawn(kind, 300)))
        assert ours[-1].to_bytes() == base64.b64decode(image)
        back = Bloom.from_bytes(base64.b64decode(image))
        assert back == ours[-1] and back.layout == layout and back.seed == seed
        assert 0.8 * capacity <= back.capacity <= 1.25 * capacity + 64
    requested = {kind: drawn(kind, 100) + drawn(kind, 400, 9_000) for kind in KINDS}
    answers = java_oracle(
        "BloomOracle",
        [
            f"ask {case[1]} {b64(bloom.to_bytes())} {words(case[1], requested[case[1]])}"
            for case, bloom in zip(cases, ours)
        ],
    )
    for case, bloom, answer in zip(cases, ours, answers, strict=True):
        assert [digit == "1" for digit in answer] == bloom.contains(requested[case[1]]).tolist()
    more = Bloom(1000, 0.03, "spark_v1").update(drawn("long", 50, 700))
    merged = java_oracle("BloomOracle", [f"merge {images[0]} {b64(more.to_bytes())}"])[0]
    assert (ours[0] | more).to_bytes() == base64.b64decode(merged)


def test_in_asks_for_one_value() -> None:
    seen = Bloom(1000).update(["a", "b"])
    assert None not in seen and None not in Bloom() and "a" in seen and float("nan") not in seen
    for column in ([], ["a", "b"], np.arange(2)):
        with pytest.raises(TypeError, match="one value"):
            assert column in seen


@each("layout", ["blocked", "spark_v1", "spark_v2"])
@each("capacity", [1, 2, 5, 10, 30, 100])
def test_rate_is_the_true_one_of_small_filters(layout: Any, capacity: int) -> None:
    """Against 20,000 keys of ours each, summed over many filters: the two hashes of Spark's are few bits."""
    rng = np.random.default_rng(capacity)
    result = rate = 0.0
    filters, requested = 60, 20_000
    for _ in range(filters):
        bloom = Bloom(capacity, 0.001, layout).update(rng.integers(0, 1 << 61, capacity))
        result += bloom.contains(rng.integers(1 << 61, 1 << 62, requested)).sum()
        rate += bloom.rate * requested
    assert abs(result - rate) < 5 * math.sqrt(1.7 * max(result, rate)) + 30
    if layout == "blocked":
        assert result <= 0.001 * filters * requested + 5 * math.sqrt(0.001 * filters * requested)
