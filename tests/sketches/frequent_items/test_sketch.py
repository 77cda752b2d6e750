"""Frequent items against a slow model of themselves and their promise."""

from __future__ import annotations

import itertools
import pickle
import threading
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.sketches.core.compilation.jit import lean
from streamgauge.sketches.core.protocol import SketchError
from streamgauge.sketches.frequent_items import FrequentItems, FrequentItemsGroups
from streamgauge.sketches.frequent_items.sketch import Item
from streamgauge.sketches.frequent_items.string_arena import words_of

from ...cases import each
from .streams import KINDS, column, state, zipf


def key(item: Any) -> Any:
    """What a table files an item under."""
    if not isinstance(item, str):
        return item
    data = np.frombuffer(item.encode(), np.uint8)
    return _words(data, np.int64(len(data)))


@lean
def _words(data: Any, size: int) -> Any:
    return words_of(data, np.int64(0), size)


class Naive:
    """The counters as the paper has them, a dictionary and a loop."""

    def __init__(self, max_size: int) -> None:
        self.capacity = 3 * max_size // 4
        self.counts: dict[Any, int] = {}
        self.offset = self.weight = 0

    def add(self, item: Any, weight: int = 1) -> None:
        self.weight += weight
        self.counts[item] = self.counts.get(item, 0) + weight
        self.purge()

    def purge(self) -> None:
        while len(self.counts) > self.capacity:
            median = sorted(self.counts.values())[len(self.counts) // 2]
            left = {item: n - median for item, n in self.counts.items() if n > median}
            self.counts = left or {min(self.counts, key=key): median}
            self.offset += median


STREAMS: dict[str, np.ndarray] = {
    "zipf": zipf(1, 20_000),
    "sorted": np.sort(zipf(2, 5_000)),
    "distinct": np.arange(5_000),
    "constant": np.zeros(3_000, np.int64),
    "two values": np.arange(4_000) % 2,
    "rounds": np.arange(9_000) % 700,
    "heavy last": np.concatenate([np.arange(6_000), np.full(2_000, -1)]),
    "limits": np.array([-(2**63), 2**63 - 1, 0, -1] * 500 + list(range(900))),
    "equal hashes' bits": np.arange(3_000) << 40,
    "empty": np.empty(0, np.int64),
}


@each("kind", KINDS)
@each("name", STREAMS)
@each("max_size", [8, 64, 512])
def test_counters_equal_the_model_in_any_cut(name: str, kind: str, max_size: int) -> None:
    values = column(STREAMS[name], kind)
    model = Naive(max_size)
    for value in values.to_pylist():
        model.add(value)
    whole = FrequentItems(max_size, kind).update(values)
    assert state(whole) == (model.counts, model.offset, model.weight)
    cut = FrequentItems(max_size, kind)
    rng = np.random.default_rng(5)
    at = 0
    while at < len(values):
        size = int(rng.choice([1, 2, 7, 30, 400, 1500]))
        cut.update(values[at : at + size])
        at += size
    assert cut == whole
    assert cut.to_bytes() == whole.to_bytes()


@each("kind", KINDS)
@each("name", STREAMS)
def test_promise(name: str, kind: str) -> None:
    values = column(STREAMS[name], kind)
    truth = Counter(values.to_pylist())
    sketch = FrequentItems(64, kind).update(values)
    assert sketch.weight == len(values)
    assert sketch.error <= 3.5 / 64 * len(values)
    for item, lower in state(sketch)[0].items():
        assert lower <= truth[item] <= lower + sketch.error
    for item, n in truth.items():
        low, high = sketch.bounds(item)
        assert low <= n <= high
    for threshold in (None, len(values) // 20, len(values) // 3):
        above = sketch.error if threshold is None else max(threshold, sketch.error)
        heavy = {item for item, n in truth.items() if n > above}
        sure = {result.item for result in sketch.frequent(threshold)}
        possible = {result.item for result in sketch.frequent(threshold, no_false="negatives")}
        assert sure <= heavy <= possible


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_repeats_where_all_fit_and_equal_the_model_where_not(kind: str) -> None:
    rng = np.random.default_rng(3)
    stream = zipf(4, 3_000)
    values = column(stream, kind)
    weights = rng.integers(0, 40, len(stream))
    weights[17] = 2**40
    model = Naive(32)
    for value, weight in zip(values.to_pylist(), weights.tolist()):
        if weight:
            model.add(value, weight)
    assert state(FrequentItems(32, kind).update(values, weights)) == (
        model.counts,
        model.offset,
        model.weight,
    )
    light = np.minimum(weights, 3)
    repeated = values.take(pa.array(np.repeat(np.arange(len(stream)), light)))
    assert FrequentItems(8192, kind).update(values, light) == FrequentItems(8192, kind).update(repeated)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_merging_in_all_orders(kind: str) -> None:
    whole = column(zipf(9, 12_000), kind)
    truth = Counter(whole.to_pylist())
    cuts = [(0, 9000), (9000, 9500), (9500, 9510), (9510, 12_000)]
    parts = [FrequentItems(size, kind).update(whole[a:b]) for (a, b), size in zip(cuts, (64, 256, 64, 8))]
    for order in itertools.permutations(parts):
        merged = FrequentItems(8, kind)
        for part in order:
            merged.merge(part)
        assert merged.max_size == 256
        assert merged.weight == 12_000
        assert merged.error <= 3.5 * sum((b - a) / size for (a, b), size in zip(cuts, (64, 256, 64, 8)))
        for item, n in truth.items():
            low, high = merged.bounds(item)
            assert low <= n <= high
    for a, b in itertools.permutations(parts, 2):
        assert a | b == b | a
    fits = [FrequentItems(8192, kind).update(whole[a:b]) for a, b in cuts]
    one = FrequentItems(8192, kind).update(whole)
    for x, y, z, w in itertools.permutations(fits):
        assert (x | y) | (z | w) == one


def test_merging_refuses_the_other_kind() -> None:
    with pytest.raises(SketchError, match="strings"):
        FrequentItems(kind="string").merge(FrequentItems(kind="long"))
    with pytest.raises(SketchError, match="strings"):
        FrequentItems().update(["a"]).merge(FrequentItems().update([1]))


def test_the_first_values_decide_what_is_counted() -> None:
    four = FrequentItems().update([4])  # whose bytes are those of a string of four, too
    for result in (four, FrequentItems.from_bytes(four.to_bytes()), pickle.loads(pickle.dumps(four))):
        assert result.kind == "long" and result.top() == [Item(4, 1, 1, 1)] and result.bounds(4) == (1, 1)
    words = FrequentItems().update([None]).update(["abcd", "ab"]).update([])
    assert FrequentItems.from_bytes(words.to_bytes()).top() == words.top() and words.kind == "string"
    with pytest.raises(TypeError, match="counts longs"):
        four.update(["a"])
    with pytest.raises(SketchError, match="another kind"):
        FrequentItems.from_bytes(four.to_bytes(), kind="string")
    for empty in (FrequentItems(), FrequentItems.from_bytes(bytes(FrequentItems())), FrequentItems().copy()):
        assert empty.bounds(7) == empty.bounds("a") == (0, 0) and empty.top() == []
        assert (empty | four) == (four | empty) == four == empty.merge(four)
    theirs = bytearray(four.to_bytes())
    theirs[6] = 0
    assert FrequentItems.from_bytes(bytes(theirs), "long") == four
    with pytest.raises(SketchError, match="give kind="):
        FrequentItems.from_bytes(bytes(theirs))


@pytest.mark.parametrize("kind", KINDS)
def test_groups_equal_single_sketches_and_merge_as_they_do(kind: str) -> None:
    rng = np.random.default_rng(8)
    stream = zipf(6, 20_000)
    values = column(stream, kind)
    group = np.minimum(rng.zipf(1.3, len(stream)) - 1, 199)
    group[3000:9000] = 2  # a long run, as windows make
    groups = FrequentItemsGroups(200, max_size=32, kind=kind)
    for part in np.array_split(np.arange(len(stream)), 7):
        groups.update(group[part].astype(np.int32), values.take(pa.array(part)))
    single = [FrequentItems(32, kind).update(values.filter(pa.array(group == g))) for g in range(200)]
    images = groups.to_arrow()
    assert images.to_pylist() == [sketch.to_bytes() for sketch in single]
    assert all(groups[g] == single[g] for g in (0, 1, 2, 3, 50, 199, -1))
    halved = FrequentItemsGroups(100, max_size=32, kind=kind)
    halved.merge(np.arange(200) % 100, images)
    expected = [(single[g] | single[g + 100]).to_bytes() for g in range(100)]
    assert halved.to_arrow().to_pylist() == expected
    halved.resize(300)
    assert halved[299] == FrequentItems(32, kind)
    halved.update(np.full(50, 299), values[:50])
    assert halved[299] == FrequentItems(32, kind).update(values[:50])


def test_what_counts_and_what_not() -> None:
    strings = FrequentItems().update([["a", None], None, [], ["b", "a", ""]])
    assert strings.top() == [Item("a", 2, 2, 2), Item("", 1, 1, 1), Item("b", 1, 1, 1)]
    assert strings.bounds("nobody") == (0, 0) and strings.estimate("a") == 2
    sliced = pa.array(["x", None, "y", "yy"], pa.large_string())[1:]
    assert state(FrequentItems().update(sliced))[0] == {"y": 1, "yy": 1}
    coded = pa.array(["p", "q", "p"]).dictionary_encode()
    assert FrequentItems().update(coded).estimate("p") == 2
    chunks = pa.chunked_array([["p"], [], ["p", None]], pa.string())
    assert FrequentItems().update(chunks).estimate("p") == 2
    weighted = FrequentItems().update([["a", "b"], ["a"], None], [3, 4, 5])
    assert state(weighted) == ({"a": 7, "b": 3}, 0, 10)
    assert FrequentItems(kind="long").update(np.array([2**63 - 1], np.uint64)).estimate(2**63 - 1) == 1
    with pytest.raises(SketchError, match="int64 only"):  # its answers would name other numbers
        FrequentItems(kind="long").update(np.array([2**63], np.uint64))
    assert FrequentItems().update([]).update(None).top() == []
    assert "nothing yet" in repr(FrequentItems()) and "'a': 2…2" in repr(strings)
    assert FrequentItems().update("word").answer() == [
        {"item": "word", "estimate": 1, "lower": 1, "upper": 1}
    ]
    assert strings.top(0) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("max_size", [8, 64])
def test_absent_items_are_found_absent_at_every_fill(kind: str, max_size: int) -> None:
    """However full a table is, a search for what isn't there ends."""
    sketch = FrequentItems(max_size, kind)
    absent = [-1 - i if kind == "long" else f"no {i}" for i in range(50)]
    for n in range(3 * max_size // 4):
        sketch.update([n] if kind == "long" else [str(n)])
        assert all(sketch.bounds(item) == (0, 0) for item in absent)
        copy = sketch.copy()
        with pytest.raises(ValueError, match="than was ever added"):
            copy.delete(absent[:1])
        assert copy == sketch


def test_top_breaks_ties_by_item() -> None:
    sketch = FrequentItems(kind="long").update([5, 3, 9, 9, 1, 7])
    assert [item.item for item in sketch.top(3)] == [9, 1, 3]


def test_refusals() -> None:
    for bad in (0, 7, 9, 4, 2**27):
        with pytest.raises(SketchError, match="max_size must be"):
            FrequentItems(bad)
    with pytest.raises(SketchError, match="kind"):
        FrequentItems(kind="float")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="counts strings"):
        FrequentItems(kind="string").update([1])
    with pytest.raises(TypeError, match="counts longs"):
        FrequentItems(kind="long").update([1.5])
    for weights in ([-1], [1, 2], [1.5], [None]):
        with pytest.raises(ValueError, match="weight"):
            FrequentItems().update(["a"], weights)
    full = FrequentItems().update(["a"], [2**63 - 10])
    with pytest.raises(OverflowError):
        full.update(["a"], [11])
    with pytest.raises(OverflowError):
        full.merge(full.copy())
    with pytest.raises(ValueError, match="no_false"):
        full.frequent(no_false="both")
    with pytest.raises(IndexError):
        FrequentItemsGroups(2).update([2], ["a"])


def test_two_threads_at_once() -> None:
    values = column(zipf(1, 200_000), "long")
    alone = FrequentItems(64, "long").update(values)
    sketches = [FrequentItems(64, "long") for _ in range(4)]
    threads = [threading.Thread(target=sketch.update, args=(values,)) for sketch in sketches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(sketch == alone for sketch in sketches)


def test_a_group_of_few_items_costs_little() -> None:
    groups = FrequentItemsGroups(100_000, kind="long")
    groups.update(np.repeat(np.arange(100_000), 2), np.arange(200_000))
    assert sum(getattr(field, "nbytes", 0) for field in groups._tables) < 25_000_000
