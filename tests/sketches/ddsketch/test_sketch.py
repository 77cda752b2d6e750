"""DDSketch against the published package, its promise, and broken bytes."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable
from typing import Any

import ddsketch
import numpy as np
import pyarrow as pa
import pytest
from ddsketch.pb import ddsketch_pb2
from ddsketch.pb.proto import DDSketchProto

from streamgauge.sketches.core.answers import USUAL_QUANTILES
from streamgauge.sketches.core.protocol import SketchError
from streamgauge.sketches.ddsketch import DDSketch, DDSketchGroups
from streamgauge.sketches.ddsketch import slots as ddsketch_slots

from ...cases import each

QS = [0, 0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1]
_rng = np.random.default_rng(17)
STREAMS = {
    "normal": _rng.normal(size=4000),
    "lognormal": _rng.lognormal(0, 3, 4000),
    "pareto": _rng.pareto(1, 4000) + 1,
    "constant": np.full(1000, 3.7),
    "sorted": np.arange(-2000.0, 2000),
    "powers": np.array([s * 2.0**e for e in range(-1021, 1024, 7) for s in (1, -1)]),
    "buckets' edges": (1.01 / 0.99) ** np.arange(-500, 500),
    "zeros": np.array([0.0, -0.0, 1.0, -1.0, 5e-324, -1e-310] * 50),
}


def theirs(values: np.ndarray, accuracy: float) -> Any:
    peer = ddsketch.DDSketch(accuracy)
    for value in values:
        peer.add(float(value))
    return peer


@each("accuracy", [0.001, 0.01, 0.1, 0.5])
@each("name", STREAMS)
def test_every_quantile_keeps_the_relative_accuracy(name: str, accuracy: float) -> None:
    values = STREAMS[name]
    sketch, ordered = DDSketch(accuracy).update(values), np.sort(values)
    assert sketch.n == len(values)
    for q in QS:
        true = ordered[int(np.floor(q * (len(values) - 1)))]
        lower, upper = sketch.quantile_bounds(q)
        assert abs(sketch.quantile(q) - true) <= accuracy * abs(true) * (1 + 1e-9) + 1e-307, (q, true)
        assert lower * (1 - 1e-12 * np.sign(lower)) <= true <= upper * (1 + 1e-12 * np.sign(upper))
    for x in ordered[:: len(ordered) // 7]:
        below, upto = sketch.rank_bounds(x)
        assert below <= np.mean(values <= x) + 1e-12 and upto >= np.mean(values < x) - 1e-12


@pytest.mark.parametrize("accuracy", [0.001, 0.01, 0.02, 1 / 3])
def test_each_small_whole_number_is_answered_within_its_share(accuracy: float) -> None:
    values = np.arange(-20_000, 20_001)
    groups = DDSketchGroups(len(values), accuracy, "long")
    groups.update(np.arange(len(values)), values)
    rows = groups.answers().field("quantiles").flatten()
    result, lower, upper = (rows.field(name).to_numpy()[::7] for name in ("value", "lower", "upper"))
    assert (np.abs(result - values) <= accuracy * np.abs(values) * (1 + 1e-12)).all()
    assert (lower <= values).all() and (values <= upper).all()
    assert (lower == np.rint(lower)).all() and (upper == np.rint(upper)).all()
    exact = np.abs(values) < (1 - accuracy) / (2 * accuracy)
    assert (result[exact] == values[exact]).all()
    one = values[1::997]
    assert [DDSketch(accuracy, "long").update(v).quantile(0.5) for v in one] == result[1::997].tolist()


def test_whole_numbers_are_rounded_only_where_that_keeps_the_promise() -> None:
    assert DDSketch(0.01, "long").update(58).quantile(0.5) == pytest.approx(58.5, rel=0.002)
    assert DDSketch(0.01, "long").update(58).quantile_bounds(0.5) == (58, 59)
    large = np.concatenate([7 ** np.arange(23), -(2 ** np.arange(63))])
    sketches = [DDSketch(0.01, "long").update(value) for value in large.tolist()]
    result = np.array([sketch.quantile(0.5) for sketch in sketches])
    assert (np.abs(result - large) <= 0.01 * np.abs(large.astype(float)) * (1 + 1e-12)).all()
    mixed = DDSketch(0.01, "long").update(large)
    assert mixed.copy().quantile(1) == pickle.loads(pickle.dumps(mixed)).quantile(1) == mixed.quantile(1)


def test_whole_numbers_at_the_ends_of_int64() -> None:
    ends = np.array([-(2**63), 2**63 - 1])
    sketch = DDSketch(0.01, "long").update(ends)
    assert [sketch.quantile(q) / 2**63 for q in (0, 1)] == pytest.approx([-1, 1], rel=0.01)
    assert all(-(2**63) <= edge <= 2**63 for q in (0, 1) for edge in sketch.quantile_bounds(q))
    with pytest.raises(SketchError, match="kind"):
        DDSketch(kind="float")


DRAWS: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "normal": lambda random: random.normal(size=1_000_000),
    "lognormal": lambda random: random.lognormal(0, 1, 1_000_000),
    "Pareto": lambda random: random.pareto(1.5, 1_000_000) + 1,
}


@pytest.mark.parametrize("name", DRAWS)
def test_p50_p99_and_p999_to_two_percent_of_value_or_a_twentieth_percent_of_rank(name: str) -> None:
    # What `quantiles` promises of its default, in at most 14,000 bytes.
    for seed in range(3):
        values = DRAWS[name](np.random.default_rng(seed))
        sketch, ordered = DDSketch().update(values), np.sort(values)
        for q in (0.5, 0.99, 0.999):
            result = sketch.quantile(q)
            rank = np.searchsorted(ordered, result) / len(ordered)
            value = abs(result / ordered[int(np.ceil(q * len(ordered))) - 1] - 1)
            assert value <= 0.02 or abs(rank - q) <= 0.0005, (q, value, rank)
        assert len(sketch.to_bytes()) <= 14_000


@pytest.mark.parametrize("name", ["normal", "lognormal", "pareto", "zeros"])
def test_the_published_package_agrees_both_ways(name: str) -> None:
    values = STREAMS[name]
    ours, peer = DDSketch(0.01).update(values), theirs(values, 0.01)
    message = ddsketch_pb2.DDSketch()
    message.ParseFromString(ours.to_bytes())
    read = DDSketchProto.from_proto(message)
    back = DDSketch.from_bytes(DDSketchProto.to_proto(peer).SerializeToString())
    assert read.count == peer.count == ours.n == back.n
    for q in QS:
        expected = pytest.approx(peer.get_quantile_value(q), rel=1e-9)
        assert ours.quantile(q) == expected == back.quantile(q)
        assert read.get_quantile_value(q) == expected
    assert back == ours


def test_the_published_package_agrees_on_weighted_values() -> None:
    rng = np.random.default_rng(12)
    values, weights = rng.normal(size=2_000) * 100, 1 / rng.uniform(0.01, 1, 2_000)
    for given in (weights, np.ceil(weights)):
        peer = ddsketch.DDSketch(0.01)
        for value, weight in zip(values.tolist(), given.tolist()):
            peer.add(value, weight)
        mine = DDSketch(0.01).update(values, weight=given)
        assert mine.n == pytest.approx(peer.count)
        read = DDSketch.from_bytes(DDSketchProto.to_proto(peer).SerializeToString())
        qs = [0.001, 0.1, 0.5, 0.9, 0.999]
        assert read.quantiles(qs) == pytest.approx(mine.quantiles(qs))
        message = ddsketch_pb2.DDSketch.FromString(mine.to_bytes())
        back = DDSketchProto.from_proto(message)
        assert back.count == pytest.approx(mine.n)
        order = np.argsort(values)
        up_to = np.cumsum(given[order]) / given.sum()
        for q in qs:
            true = values[order][np.searchsorted(up_to, q)]
            assert abs(mine.quantile(q) - true) <= 0.02 * abs(true), q
            lower, upper = mine.quantile_bounds(q)
            assert lower <= true <= upper, q


def test_fractions_of_weight_have_quantiles() -> None:
    sketch = DDSketch().update([1, 2, 3, 4, 5], weight=0.1)
    assert sketch.n == pytest.approx(0.5)
    assert [round(x) for x in sketch.quantiles([0, 0.2, 0.5, 0.7, 1])] == [1, 1, 3, 4, 5]
    assert DDSketch().update([1, 2], weight=0.5).quantile(1) == pytest.approx(2, rel=0.01)


def test_weights_past_the_limit_change_nothing() -> None:
    sketch = DDSketch().update([1.0], weight=2.0**61)
    with pytest.raises(SketchError, match=r"fewer than 2\^62"):
        sketch.update([2.0, 3.0], weight=[1.0, 2.0**61])
    assert sketch.n == 1 << 61
    assert sketch.update([2.0, np.nan], weight=[2.0**60, 2.0**61]).n == 3 << 60


def test_merged_parts_equal_the_whole_in_any_order() -> None:
    parts = [values for name, values in STREAMS.items() if name != "powers"]
    whole = DDSketch(0.02).update(np.concatenate(parts))
    for order in (parts, parts[::-1]):
        merged = DDSketch(0.02)
        for part in order:
            merged.merge(DDSketch(0.02).update(part))
        assert merged == whole
    with pytest.raises(SketchError, match="different buckets"):
        whole.merge(DDSketch(0.01).update(1.0))


def test_any_cut_gives_the_same_bytes() -> None:
    values = STREAMS["lognormal"]
    pieces = DDSketch()
    for piece in np.array_split(values, 61):
        pieces.update(piece)
    assert pieces == DDSketch().update(values) == pickle.loads(pickle.dumps(pieces))


@pytest.mark.parametrize("accuracy", [0.01, 0.001])  # by a table, and by logarithms
def test_many_values_at_once_count_as_few_do(accuracy: float) -> None:
    rng = np.random.default_rng(4)
    extremes = [0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 5e-324, -2.3e-308, np.finfo(float).max]
    values = np.concatenate([rng.normal(size=70_000), 10 ** rng.uniform(-308, 308, 3000), extremes])
    rng.shuffle(values)
    few, many = DDSketch(accuracy), DDSketch(accuracy).update(values)
    for piece in np.array_split(values, 50):
        few.update(piece)
    assert few == many and many.n == len(values) - 2
    result = ddsketch_slots.work_out(values, ddsketch_slots.slots_of(many._store.gamma))
    for sign, own in enumerate((values > 0, values < 0)):
        first, counts = many._store.window(0, sign)
        spread = many._store.slots.spread
        held = np.bincount(result[own] - sign * spread, minlength=spread)
        held[0] = 0
        assert counts.tolist() == np.trim_zeros(held).tolist()
        assert first == many._store.slots.first - 1 + np.flatnonzero(held)[0]


def test_nan_nulls_infinities_and_other_types() -> None:
    sketch = DDSketch().update([1.0, None, float("nan"), float("inf"), -float("inf")])
    assert sketch.n == 3 and sketch.quantiles([0, 1]) == [-np.inf, np.inf]
    assert DDSketch.from_bytes(sketch.to_bytes()) == sketch
    assert DDSketch().update(np.array([1.7976931348623157e308])).quantile(1) < np.inf
    assert DDSketch().update(pa.array([[1, 2], None], pa.list_(pa.uint64()))).n == 2
    with pytest.raises(TypeError):
        DDSketch().update("a")
    with pytest.raises(SketchError, match="relative_accuracy"):
        DDSketch(0)
    with pytest.raises(SketchError, match="empty"):
        DDSketch().quantile(0.5)
    with pytest.raises(SketchError, match="from 0 to 1"):
        DDSketch().update(1).quantile(2)


def test_answer_and_repr() -> None:
    sketch = DDSketch().update(STREAMS["pareto"])
    answer = sketch.answer()
    assert answer["n"] == 4000 and [row["q"] for row in answer["quantiles"]] == list(USUAL_QUANTILES)
    assert all(row["lower"] <= row["value"] <= row["upper"] for row in answer["quantiles"])
    assert "n=4000" in repr(sketch) and "1.00%" in repr(sketch) and "empty" in repr(DDSketch())


def test_broken_bytes_are_refused_or_read_as_a_valid_sketch() -> None:
    image = DDSketch(0.1).update([1.0, 2.0, -3.0, 0.0]).to_bytes()
    broken = [image[:length] for length in range(len(image))]
    for place in range(len(image)):
        for bit in range(8):
            flipped = bytearray(image)
            flipped[place] ^= 1 << bit
            broken.append(bytes(flipped))
    refused = 0
    for data in broken:
        try:
            sketch = DDSketch.from_bytes(data)
        except SketchError:
            refused += 1
            continue
        assert DDSketch.from_bytes(sketch.to_bytes()).n == pytest.approx(sketch.n)
        assert sketch.n == 0 or sketch.quantile(0) <= sketch.quantile(1)
    assert len(image) < refused < len(broken)


def test_groups_are_as_single_sketches_and_merge() -> None:
    groups, values = _rng.zipf(1.3, 6000) % 40, _rng.normal(size=6000)
    many = DDSketchGroups(5)
    many.resize(41)
    for at in np.array_split(np.arange(6000), 300):  # small batches go row by row
        many.update(groups[at], values[at])
    alone = DDSketchGroups(41)
    alone.update(groups, values)
    column = many.to_arrow()
    for g in range(41):
        assert many[g] == alone[g] == DDSketch().update(values[groups == g])
        assert column[g].as_py() == many[g].to_bytes()
    total = DDSketchGroups(1)
    total.merge(np.zeros(41, int), column)
    assert total[0] == DDSketch().update(values)
    with pytest.raises(SketchError):
        total.merge([0], pa.array([b"x"], pa.binary()))


def test_many_images_are_written_and_read_as_the_protobuf_library_does() -> None:
    columns = [*STREAMS.values(), np.array([]), np.array([1.0]), np.array([0.0]), np.array([-np.inf, np.inf])]
    groups = DDSketchGroups(len(columns), 0.02)
    for g, values in enumerate(columns):
        groups.update(np.full(len(values), g), values)
    image = groups.to_arrow()
    assert image.to_pylist() == [groups._store.image(g) for g in range(len(columns))]
    merged = DDSketchGroups(2, 0.02)
    merged.merge(np.arange(len(columns)) % 2, image)
    merged.merge(np.zeros(3, np.int64), image.slice(4, 3))
    for g in range(2):
        expected = DDSketch(0.02)
        for part in [*columns[g::2], *(columns[4:7] if g == 0 else [])]:
            expected.update(part)
        assert merged[g] == expected


@pytest.mark.slow
@pytest.mark.parametrize("bits", [1, pytest.param(8, marks=pytest.mark.soak)])
def test_broken_images_are_read_in_many_as_alone(bits: int) -> None:
    """With so many bits of each byte flipped, each by itself."""
    image = DDSketch(0.01).update([-3.0, -3.1, 0.0, 7.5, 900.0]).to_bytes()
    flipped = [
        image[:i] + bytes([image[i] ^ 1 << (3 * i + bit) % 8]) + image[i + 1 :]
        for i in range(len(image))
        for bit in range(bits)
    ]
    for data in [*(image[:i] for i in range(len(image))), *flipped, image + image, image + b"\x21"]:
        groups = DDSketchGroups(1, 0.01)
        try:
            expected = DDSketch(0.01).merge(DDSketch.from_bytes(data))
        except SketchError:
            with pytest.raises(SketchError):
                groups.merge(np.zeros(1, np.int64), pa.array([data]))
        else:
            groups.merge(np.zeros(1, np.int64), pa.array([data]))
            assert groups[0] == expected


@pytest.mark.parametrize("kind", ["double", "long"])
def test_answers_of_many_groups_are_those_of_each(kind: Any) -> None:
    groups = DDSketchGroups(300, kind=kind)
    random = np.random.default_rng(3)
    values = np.round(random.lognormal(3, 2, 5_000)) * random.choice([-1, 0, 1], 5_000)
    groups.update(random.integers(0, 250, 5_000), values)
    assert groups.answers().to_pylist() == [groups[g].answer() for g in range(300)]


@pytest.mark.parametrize("accuracy", [0.0001, 0.01, 0.02, 0.1, 0.5])
def test_the_ends_of_double_and_of_int64(accuracy: float) -> None:
    top, least = np.finfo(float).max, np.finfo(float).tiny
    for value in (top, -top, np.inf, -np.inf, 0.0, -0.0, 5e-324, least, 3.01 * least, -3.01 * least, 2.0**63):
        sketch = DDSketch(accuracy).update(np.full(3, value))
        result, (lower, upper) = sketch.quantile(0.5), sketch.quantile_bounds(0.5)
        assert lower <= value <= upper and np.isfinite(result) == np.isfinite(value)
        counted_as_zero = abs(value) < least * (1 + accuracy) / (1 - accuracy)
        error = abs(result - value) if np.isfinite(value) else 0.0
        assert result == 0 if counted_as_zero else error <= accuracy * abs(value) * (1 + 1e-9)
        assert 0 <= sketch.rank_bounds(value)[0] <= sketch.rank_bounds(value)[1] == 1
        assert DDSketch.from_bytes(sketch.to_bytes()).quantile_bounds(0.5) == (lower, upper)
    for whole in (-(2**63), 1 - 2**63, 2**63 - 1, 2**63 - 1024, 2**53 + 1, 0, 1, -1, 49, 50, 58, 64, 10**18):
        sketch = DDSketch(accuracy, kind="long").update(np.array([whole]))
        lower, upper = sketch.quantile_bounds(0.5)
        assert lower <= whole <= upper
        assert abs(sketch.quantile(0.5) - whole) <= accuracy * abs(whole) * (1 + 1e-9)


def test_quantiles_and_their_bounds_found_in_one_go() -> None:
    shares = [1.0, 0.0, 0.5, 0.99]
    sketch = DDSketch().update(np.random.default_rng(1).normal(size=3_000))
    values, lower, upper = sketch.quantiles_within(shares)
    assert values == sketch.quantiles(shares)
    assert list(zip(lower, upper)) == [sketch.quantile_bounds(q) for q in shares]


METHODS = (
    "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen",
    "weibull", "linear", "median_unbiased", "normal_unbiased", "lower", "higher", "midpoint", "nearest",
)  # fmt: skip


@each("method", METHODS)
def test_bounds_hold_by_each_definition_of_a_quantile(method: Any) -> None:
    """Values far apart, so that a rank more or less is another bucket; shares on ranks and between them."""
    rng = np.random.default_rng(4)
    for n in (1, 2, 3, 4, 5, 7, 10, 20, 64, 101, 1000):
        values = 2.0 ** rng.permutation(n) if n < 101 else rng.lognormal(0, 9, n)
        values *= rng.choice([-1, 1], n)
        sketch = DDSketch().update(values)
        shares = np.unique(np.concatenate([np.arange(n + 1) / n, rng.random(50), [0.25, 0.5, 0.9, 0.99]]))
        _, lower, upper = sketch.quantiles_within(shares)
        true = np.quantile(values, shares, method=method)
        slack = 1e-9 * np.abs(true)
        assert (np.array(lower) <= true + slack).all() and (true - slack <= np.array(upper)).all()


def test_bounds_hold_for_values_within_units_of_an_edge() -> None:
    """A bucket's end falls between two doubles: which of the two belongs in it, rounding decides."""
    rng, wrong = np.random.default_rng(7), []
    for accuracy, size in itertools.product((1e-4, 0.003, 0.01, 0.5), (1e-300, 1.0, 1e300)):
        gamma = 1 + 2 * accuracy / (1 - accuracy)
        keys = round(np.log(size) / np.log(gamma)) + rng.integers(-40, 40, 20)
        edges = np.exp(np.clip(keys * np.log(gamma), -705, 709))
        near = (edges[:, None] * (1 + np.arange(-1, 2) * 2.0**-52)).ravel()
        values = np.concatenate([near, -near, [size] * 3])
        sketch = DDSketch(accuracy).update(values)
        read = DDSketch.from_bytes(sketch.to_bytes())
        for one in (sketch, read):
            for x in values.tolist():
                lower, upper = one.rank_bounds(x)
                if not lower <= np.mean(values <= x) <= upper or not lower <= one.rank(x) <= upper:
                    wrong.append((accuracy, size, x))
        ordered, shares = np.sort(values), np.linspace(0, 1, 101)
        for q, lower, upper in zip(shares, *sketch.quantiles_within(shares)[1:]):
            if not lower <= ordered[int(q * (len(values) - 1))] <= upper:
                wrong.append((accuracy, size, "quantile", q))
    assert not wrong


def test_rank_bounds_name_both_buckets_of_an_edge() -> None:
    sketch = DDSketch().update([0.5, 1.0, np.nextafter(1.0, 2), 2.0])
    assert sketch.rank_bounds(1.0)[0] == 0.25 and sketch.rank_bounds(1.0)[1] == 0.75
    assert sketch.rank(1.0) == 0.5 and sketch.rank(np.nextafter(1.0, 2)) == 0.75


def test_gamma_of_the_same_accuracy_worked_out_otherwise_is_the_same() -> None:
    for accuracy in (1e-4, 0.01, 0.02, 0.25):
        sketch, message = DDSketch(accuracy).update([3.0, 5.0]), ddsketch_pb2.DDSketch()
        message.ParseFromString(sketch.to_bytes())
        message.mapping.gamma = (1 + accuracy) / (1 - accuracy)
        assert sketch.copy().merge(DDSketch.from_bytes(message.SerializeToString())).n == 4
        message.mapping.gamma *= 1 + 1e-10
        with pytest.raises(SketchError, match="different buckets"):
            sketch.merge(DDSketch.from_bytes(message.SerializeToString()))


def test_whole_weights_count_the_same_as_integers_and_as_doubles_and_as_values_do() -> None:
    values = np.random.default_rng(8).lognormal(size=70_000)
    weights = np.arange(70_000) % 5
    whole = DDSketch().update(values, weight=weights)
    assert whole.to_bytes() == DDSketch().update(values, weight=weights.astype(float)).to_bytes()
    assert whole.to_bytes() == DDSketch().update(np.repeat(values, weights)).to_bytes()
    groups = DDSketchGroups(1)
    groups.update(np.zeros(70_000, np.int64), values, weight=weights)
    assert groups.to_arrow()[0].as_py() == whole.to_bytes()
