"""An archive in a bucket of an object store, on a server of S3's protocol on loopback."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge.agents.archive.retention import remove_older
from streamgauge.operators.archive.chain import segments, topics_of
from streamgauge.operators.archive.recording import Recording
from streamgauge.operators.archive.segment import SegmentWriter
from streamgauge.operators.archive.store import Store, store_of
from streamgauge.operators.formats.messages import Messages


def write(store: Store, first: int, values: list[bytes]) -> bool:
    writer = SegmentWriter("posts", 0, first)
    writer.add(Messages.of(values, first_offset=first, timestamps=[first] * len(values)))
    segment, data = writer.finish()
    return store.create(segment.path, data)


def test_a_bucket_holds_a_chain(s3: dict[str, Any]) -> None:
    store = store_of("s3://streams/archive", s3)
    assert write(store, 0, [b"a", b"b"]) and write(store, 2, [b"c"])
    assert not write(store, 2, [b"another"])
    assert topics_of(store) == {"posts": [0]}
    assert [(one.first_offset, one.next_offset) for one in segments(store, "posts", 0)] == [(0, 2), (2, 3)]
    recording = Recording.open("s3://streams/archive", options=s3)
    assert [value for part in recording.read(0) for value in part.value.to_pylist()] == [b"a", b"b", b"c"]
    with store.open(segments(store, "posts", 0)[0].path) as file:
        assert pq.read_table(file).column("value").to_pylist() == [b"a", b"b"]
    assert [one.first_offset for one in remove_older(store, topics_of(store), 10)] == [0]
    assert [one.first_offset for one in segments(store, "posts", 0)] == [2]


def test_a_file_that_is_gone_says_so(s3: dict[str, Any]) -> None:
    store = store_of("s3://streams/other", s3)
    assert (store.files("topic=posts"), store.folders("")) == ([], [])
    with pytest.raises(FileNotFoundError):
        store.open("topic=posts/partition=0/x.parquet").read()
    store.remove("topic=posts/partition=0/x.parquet")
    assert store.create("x/empty", pa.py_buffer(b""))
