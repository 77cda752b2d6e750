"""What a group commits of a partition is read back: of one stream, of several, and as written before."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from streamgauge.operators.consumer.group.committed import (
    LARGEST,
    LONE,
    Committed,
    committable,
    largest_metadata,
    metadata_of,
    offset_of,
    places_of,
)
from streamgauge.operators.watermarks.partition_watermark import PartitionTime
from streamgauge.operators.watermarks.position import Input, Position
from streamgauge.operators.windows.window import EARLIEST


def drawn(random: np.random.Generator) -> Committed:
    offset = int(random.integers(0, 1 << 40))
    time = PartitionTime(*random.integers(EARLIEST, 1 << 60, 2).tolist(), 20, 3, EARLIEST, EARLIEST)
    replay = None if random.random() < 0.3 else offset - int(random.integers(0, min(offset, 9) + 1))
    epochs = random.integers(1, 5, 2).tolist() if random.random() < 0.5 else [0, 0]
    log = tuple(random.integers(0, 1 << 40, random.integers(0, 4)).tolist())
    again = None if replay is None or random.random() < 0.5 else replace(time, rows=7)
    return Committed(
        Position(offset, time, replay, again), log, "0123456789abcdef", "t" * 22, "u" * 22, *epochs
    )


@pytest.mark.parametrize("names", [[LONE], ["only"], ["a", "b", "c-d_e"]])
def test_places_are_read_back_whatever_is_in_them(names: list[str]) -> None:
    random = np.random.default_rng(7)
    for _ in range(200):
        places = {name: drawn(random) for name in names}
        offset = offset_of(places)
        assert offset == min(place.position.offset for place in places.values())
        assert places_of(offset, metadata_of(places)) == places


def test_what_no_stream_committed_is_an_offset_alone() -> None:
    for metadata in (None, "", "mine", "7", "[1, 2]", '{"a": 3}', '{"a": [1, "f"]}', "null", '"x"'):
        assert places_of(7, metadata) == {LONE: Committed(Position(7))}, metadata


def test_a_lone_streams_place_is_written_as_before() -> None:
    time = PartitionTime(5, 4, 3, 2, 1, 0)
    place = Committed(Position(9, time, 7), (4, 6), "abc", "t", "u", epoch=2, moved=1)
    assert metadata_of({LONE: place}) == '["abc","t","u",[5,4,3,2,1,0,2,2,1],4,6]'


def test_the_leaders_epoch_is_committed_beside_the_offset() -> None:
    where = Input("posts", 0)
    places = {name: Committed(Position(9, leader_epoch=epoch)) for name, epoch in (("a", 3), ("b", 4))}
    (wanted,) = committable({where: places})
    assert (wanted.offset, wanted.leader_epoch) == (9, 4)
    for stored, known in ((wanted.leader_epoch, 4), (None, -1)):  # older groups, and other tools, have none
        read = places_of(9, wanted.metadata, stored)
        assert {place.position.leader_epoch for place in read.values()} == {known}
    assert committable({where: {LONE: Committed(Position(9))}})[0].leader_epoch is None


def test_streams_whose_places_may_not_fit_are_known_beforehand() -> None:
    random, names = np.random.default_rng(3), [f"stream-{n}" for n in range(12)]
    ids = dict.fromkeys(names, ("u" * 22, "t" * 22))
    most = largest_metadata(ids, names)
    assert largest_metadata(ids) < most < LARGEST
    for _ in range(50):
        places = {name: drawn(random) for name in names}
        plain = {name: replace(place, log=(), epoch=0, moved=0) for name, place in places.items()}
        assert len(metadata_of(plain)) <= most
    assert largest_metadata({f"stream-{n}": ("u" * 22, "t" * 22) for n in range(40)}) > LARGEST
    assert json.loads(metadata_of(plain)).keys() == set(names)
