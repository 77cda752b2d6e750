"""Bytes of frequent items: read and written as DataSketches does, refused where they are broken."""

from __future__ import annotations

import contextlib
import pickle
from collections import Counter
from typing import Any

import datasketches
import numpy as np
import pyarrow as pa
import pytest

from streamgauge.sketches.core.protocol import SketchError
from streamgauge.sketches.frequent_items import FrequentItems, FrequentItemsGroups
from streamgauge.sketches.frequent_items.sketch import Item

from .streams import KINDS, column, state, zipf


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_round_trip_and_pickle_and_go_on_alike(kind: str) -> None:
    for size, n in ((8, 0), (8, 3), (8, 100), (64, 5000), (4096, 5000)):
        sketch = FrequentItems(size, kind).update(column(zipf(n, n), kind))
        for twin in (FrequentItems.from_bytes(sketch.to_bytes(), kind), pickle.loads(pickle.dumps(sketch))):
            assert twin == sketch and state(twin) == state(sketch) and twin.max_size == size
            more = column(zipf(77, 900), kind)
            assert twin.update(more) == sketch.copy().update(more)


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
        result = read.get_frequent_items(datasketches.frequent_items_error_type.NO_FALSE_NEGATIVES, 0)
        assert {item: lower for item, _, lower, _ in result} == state(ours)[0]
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
    with pytest.raises(SketchError, match="row 2 is not an image"):
        groups.merge(np.zeros(4, np.int64), pa.array([good, None, good[:-1], good]))
    assert groups[0] == FrequentItems()
    groups.merge(np.zeros(2, np.int64), pa.array([None, good]))
    assert groups[0].estimate("a") == 1
    with pytest.raises(SketchError, match="expected a column of binary"):
        groups.merge(np.zeros(1, np.int64), pa.array(["text"]))


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
