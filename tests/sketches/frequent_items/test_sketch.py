"""Frequent items against a slow model of themselves, their promise, and the bytes of datasketches-cpp."""

from __future__ import annotations

import contextlib
import itertools
import pickle
import threading
from collections import Counter
from typing import Any

import datasketches
import numba
import numpy as np
import pyarrow as pa
import pytest

from streamgauge.sketches.core.protocol import SketchError
from streamgauge.sketches.frequent_items import FrequentItems, FrequentItemsGroups
from streamgauge.sketches.frequent_items.sketch import Item
from streamgauge.sketches.frequent_items.update_strings import words_of

KINDS = ("long", "string")


def key(item: Any) -> Any:
    """What a table files an item under."""
    if not isinstance(item, str):
        return item
    data = np.frombuffer(item.encode(), np.uint8)
    return _words(data, np.int64(len(data)))


@numba.njit
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


def zipf(seed: int, n: int, universe: int = 3000) -> np.ndarray:
    ranks = np.arange(1, universe + 1) ** -1.1
    return np.random.default_rng(seed).choice(universe, n, p=ranks / ranks.sum()).astype(np.int64) - 7


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


def column(stream: np.ndarray, kind: str) -> pa.Array:
    if kind == "long":
        return pa.array(stream)
    words = {
        -7: "",
        -6: "é",
        -5: "日本語",
        -4: "a" * 100,
        -3: "12345678",
        -2: "123456789",
        0: "\x00",
        1: "\x00\x00",
    }
    return pa.array([words.get(x, f"tag {x}") for x in stream.tolist()], pa.string())


def state(sketch: FrequentItems) -> tuple[dict[Any, int], int, int]:
    return {item.item: item.lower for item in sketch.top(len(sketch))}, sketch.error, sketch.weight


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("max_size", [8, 64, 512])
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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", STREAMS)
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
        sure = {found.item for found in sketch.frequent(threshold)}
        possible = {found.item for found in sketch.frequent(threshold, no_false="negatives")}
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
    for found in (four, FrequentItems.from_bytes(four.to_bytes()), pickle.loads(pickle.dumps(four))):
        assert found.kind == "long" and found.top() == [Item(4, 1, 1, 1)] and found.bounds(4) == (1, 1)
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
        FrequentItems(kind="double")
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


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_round_trip_and_pickle_and_go_on_alike(kind: str) -> None:
    for size, n in ((8, 0), (8, 3), (8, 100), (64, 5000), (4096, 5000)):
        sketch = FrequentItems(size, kind).update(column(zipf(n, n), kind))
        for twin in (FrequentItems.from_bytes(sketch.to_bytes(), kind), pickle.loads(pickle.dumps(sketch))):
            assert twin == sketch and state(twin) == state(sketch) and twin.max_size == size
            more = column(zipf(77, 900), kind)
            assert twin.update(more) == sketch.copy().update(more)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("max_size", [8, 64, 8192])
def test_deletions_keep_the_bounds(kind: str, max_size: int) -> None:
    rng = np.random.default_rng(max_size)
    values = column(zipf(12, 8_000), kind)
    items = values.to_pylist()
    groups = FrequentItemsGroups(3, max_size=max_size, kind=kind)
    sketch = FrequentItems(max_size, kind)
    truth: Counter[Any] = Counter()
    for begin in range(0, 8_000, 1_000):
        sketch.update(values[begin : begin + 1_000])
        groups.update(np.full(1_000, 1), values[begin : begin + 1_000])
        truth.update(items[begin : begin + 1_000])
        gone = []
        for i in rng.permutation(begin + 1_000)[:400]:
            if truth[items[i]] > 0:
                truth[items[i]] -= 1
                gone.append(i)
        gone_values = values.take(pa.array(np.array(gone)))
        for part in np.array_split(np.arange(len(gone)), 3):
            sketch.delete(gone_values.take(pa.array(part)))
        groups.delete(np.full(len(gone), 1), gone_values, weight=np.ones(len(gone), np.int64))
        assert sketch.weight == truth.total()
        for item, n in truth.items():
            low, high = sketch.bounds(item)
            assert low <= n <= high
            assert max_size < 8192 or low == n
        assert FrequentItems.from_bytes(sketch.to_bytes(), kind) == sketch == groups[1]
    assert sketch.error <= 3.5 / max_size * 8_000
    left = [item for item, n in truth.items() for _ in range(n)]
    assert sketch.delete(left) == FrequentItems(max_size, kind)
    with pytest.raises(ValueError, match="can't delete 1 from group 0"):
        sketch.delete(values[:1])
    assert groups[0] == groups[2] == FrequentItems(max_size, kind)


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


def test_cpp_reads_ours_and_we_read_cpps() -> None:
    for size, lg, n in ((8, 3, 0), (8, 3, 5), (64, 6, 4000), (1024, 10, 9000)):
        values = column(zipf(n, n), "string")
        truth = Counter(values.to_pylist())
        ours = FrequentItems(size).update(values)
        theirs = datasketches.frequent_strings_sketch(lg)
        for value in values.to_pylist():
            theirs.update(value)
        read = datasketches.frequent_strings_sketch.deserialize(ours.to_bytes())
        assert read.total_weight == ours.weight and read.num_active_items == len(ours)
        found = read.get_frequent_items(datasketches.frequent_items_error_type.NO_FALSE_NEGATIVES, 0)
        assert {item: lower for item, _, lower, _ in found} == state(ours)[0]
        back = FrequentItems.from_bytes(theirs.serialize(), "string")
        assert back.weight == theirs.total_weight and len(back) == theirs.num_active_items
        for item, n_true in truth.items():
            assert back.bounds(item) == (theirs.get_lower_bound(item), theirs.get_upper_bound(item))
            assert back.bounds(item)[0] <= n_true <= back.bounds(item)[1]
        assert abs(back.error - ours.error) <= 3.5 / size * len(values)
        theirs.merge(read)
        both = back.merge(ours)
        for item, n_true in truth.items():
            assert both.bounds(item)[0] <= 2 * n_true <= both.bounds(item)[1]
            assert theirs.get_lower_bound(item) <= 2 * n_true <= theirs.get_upper_bound(item)


@pytest.mark.parametrize("kind", KINDS)
def test_every_truncation_and_every_flipped_byte(kind: str) -> None:
    image = FrequentItems(8, kind).update(column(zipf(3, 40), kind)).to_bytes()
    for size in range(len(image)):
        with pytest.raises(SketchError):
            FrequentItems.from_bytes(image[:size], kind)
    with pytest.raises(SketchError):
        FrequentItems.from_bytes(image + b"\x00", kind)
    survived = 0
    for at in range(len(image)):
        for flip in (0x01, 0x10, 0x80, 0xFF):
            broken = bytearray(image)
            broken[at] ^= flip
            try:
                sketch = FrequentItems.from_bytes(bytes(broken), kind)
            except SketchError:
                continue
            survived += 1
            assert FrequentItems.from_bytes(sketch.to_bytes(), kind) == sketch
            assert sum(lower for lower in state(sketch)[0].values()) <= sketch.weight
            sketch.update(column(zipf(3, 40), kind)).top()
    assert survived  # a changed letter, a smaller counter: another sketch, but one


@pytest.mark.parametrize("kind", KINDS)
def test_no_byte_beyond_an_image_is_read(kind: str, guarded: Any) -> None:
    """Images that end at an unreadable page, whole, cut and with lengths changed."""
    image = FrequentItems(8, kind).update(column(zipf(3, 40), kind)).to_bytes()
    for size in range(len(image) + 1):
        for at in (0, 3, 8, 9, 32, size - 5, size - 12):
            broken = bytearray(image[:size])
            if 0 <= at < size and size < len(image) + 1:
                broken[at] ^= 0x14
            place = guarded.at_end(bytes(broken))
            ends = pa.py_buffer(np.array([0, size], np.int32))
            array = pa.Array.from_buffers(pa.binary(), 1, [None, ends, pa.py_buffer(place)])
            groups = FrequentItemsGroups(1, max_size=8, kind=kind)
            with contextlib.suppress(SketchError):
                groups.merge(np.zeros(1, np.int64), array)
    place = guarded.at_end(image)
    ends = pa.py_buffer(np.array([0, len(image)], np.int32))
    array = pa.Array.from_buffers(pa.binary(), 1, [None, ends, pa.py_buffer(place)])
    groups = FrequentItemsGroups(1, max_size=8, kind=kind)
    groups.merge(np.zeros(1, np.int64), array)
    assert groups[0].to_bytes() == image


def test_no_byte_beyond_a_string_is_read(guarded: Any) -> None:
    for text in ("", "a", "1234567", "12345678", "123456789abcdef", "123456789abcdefg", "x" * 40):
        place = guarded.at_end(text.encode())
        ends = pa.py_buffer(np.array([0, len(text)], np.int32))
        array = pa.Array.from_buffers(pa.string(), 1, [None, ends, pa.py_buffer(place)])
        assert FrequentItems().update(array).update(array).top(1) == [Item(text, 2, 2, 2)]


def test_a_bad_row_is_named_and_nothing_merged() -> None:
    good = FrequentItems().update(["a"]).to_bytes()
    groups = FrequentItemsGroups(1)
    with pytest.raises(SketchError, match="row 2 is no image"):
        groups.merge(np.zeros(4, np.int64), pa.array([good, None, good[:-1], good]))
    assert groups[0] == FrequentItems()
    groups.merge(np.zeros(2, np.int64), pa.array([None, good]))
    assert groups[0].estimate("a") == 1
    with pytest.raises(SketchError, match="expected a column of binary"):
        groups.merge(np.zeros(1, np.int64), pa.array(["text"]))


def test_a_group_of_few_items_costs_little() -> None:
    groups = FrequentItemsGroups(100_000, kind="long")
    groups.update(np.repeat(np.arange(100_000), 2), np.arange(200_000))
    assert sum(array.nbytes for array in groups._tables) < 25_000_000


@pytest.mark.parametrize("kind", ["long", "string"])
def test_a_delete_that_raises_deletes_nothing(kind: Any) -> None:
    word = str if kind == "string" else int
    values = [word(i % 20) for i in range(300)]
    groups = FrequentItemsGroups(3, 64, kind)
    for group in range(3):
        groups.update(np.full(300, group), pa.array(values))
    before = groups.to_arrow()
    gone = pa.array([*values[:40], *[word(1)] * 60])
    with pytest.raises(ValueError, match="nothing was deleted"):
        groups.delete(np.array([0] * 10 + [2] * 90), gone)
    assert groups.to_arrow() == before
    groups.delete(np.zeros(300, int), pa.array(values))
    assert groups[0] == FrequentItems(64, kind) and groups.to_arrow()[1:] == before[1:]


def test_bytes_whose_bounds_would_leave_int64_are_refused() -> None:
    image = bytearray(FrequentItems(8, "long").update(np.arange(100)).to_bytes())
    image[24:32] = (2**62).to_bytes(8, "little")
    image[16:24] = (2**61).to_bytes(8, "little")
    large = FrequentItems.from_bytes(bytes(image), "long")
    before = large.to_bytes()
    with pytest.raises(OverflowError, match="int64"):
        large.merge(large.copy())
    assert large.to_bytes() == before
    image[24:32] = (2**63 - 2**60).to_bytes(8, "little")
    with pytest.raises(SketchError, match="add up"):
        FrequentItems.from_bytes(bytes(image), "long")
