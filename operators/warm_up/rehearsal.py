"""Running a stream's whole path from messages to answers once, with a few messages."""

from __future__ import annotations

import pyarrow as pa

from ..definition.sources import KafkaSource
from ..definition.stream import Stream
from ..formats.messages import Messages
from ..sketching.sketcher import Sketcher
from ..table.merge import merge_tables
from ..table.query import query
from ..watermarks.partition_watermark import PartitionTime


def rehearse(stream: Stream, messages: Messages) -> pa.Table:
    """Decode, sketch, merge and query a few messages, so that no first batch waits for the compiler."""
    assert isinstance(stream.source, KafkaSource)
    sketcher = Sketcher(stream)
    sketcher.add(stream.source.decode(messages).frame, PartitionTime())
    table = sketcher.drain()
    table = merge_tables([table, table])
    query(table)
    return table
