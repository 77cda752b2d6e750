"""Messages in, sketches by partition out."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from streamgauge.operators.consumer.plan import Plan
from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json import json
from streamgauge.operators.formats.messages import Messages
from streamgauge.operators.kafka.source import ReadError
from streamgauge.operators.sketching.intake import Intake
from streamgauge.operators.sketching.progress import Progress

STREAM = Stream.from_kafka("posts", value=json({"n": pl.Int64})).tumbling("1m").agg(posts=count())


def test_messages_of_a_partition_that_come_out_of_order_are_not_judged_by_it() -> None:
    intake = Intake(Plan(STREAM, "g", "t", 2))
    for partition in (0, 1):
        intake.begin(partition, Progress(STREAM, "posts", partition, 0), [])
    stamps = [1_700_000_000_000 + n for n in range(6)]
    messages = Messages.of([b'{"n": 1}'] * 6, partition=[0, 0, 1, 1, 0, 1], timestamps=stamps)
    intake.take(messages)
    assert [own.account.counted for own in intake.progress.values()] == [3, 3]
    with pytest.raises(ReadError, match=r"posts\[1\] was read out of order: offset 0 came after 1"):
        intake.take(messages.select(np.array([0, 3, 2])))
