"""Records of a table topic, made without a broker."""

from __future__ import annotations

import polars as pl

from streamgauge.operators.consumer.log.snapshots import Snapshot
from streamgauge.operators.consumer.merge.merger import Merger
from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.sketching.delta import Delta
from streamgauge.operators.watermarks.partition_watermark import PartitionTime

STREAM = Stream.from_schema({"at": pl.Datetime("us")}, time="at").tumbling("1m").agg(posts=count())


def delta(partition: int, first: int, following: int) -> Delta:
    account = Account(read=following - first, counted=following - first)
    return Delta(
        STREAM.fingerprint(), "posts", partition, first, following, None, PartitionTime(10), account=account
    )


def snapshot(merger: Merger) -> Snapshot:
    return Snapshot(STREAM.fingerprint(), {"posts": "id"}, *merger.restore_point(), STREAM.definition())
