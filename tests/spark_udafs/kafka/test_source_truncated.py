"""Logs that lose messages which a query has read: it ends and names them, or goes on and counts them."""

from __future__ import annotations

import json as plain_json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from streamgauge.apps.dev.kafka.broker import EmbeddedKafka
from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.kafka.reader import LogTruncated

from ...operators.kafka.lost_tail import lose_tail, send_numbers
from .planned import Query, account, values

pytestmark = pytest.mark.kafka


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(data=tmp_path / "data") as broker:
        yield broker


@pytest.mark.slow
def test_a_truncated_log_is_found_when_a_batch_is_planned(broker: EmbeddedKafka) -> None:
    broker.create_topic("posts")
    stream: Any = (
        Stream.from_kafka("posts", value=json({"n": pl.Int64}), bootstrap_servers=broker.bootstrap_servers)
        .tumbling("1d")
        .agg(rows=count())
    )
    messages, sketches = Query(broker, subscribe="posts"), Query(broker, stream=stream)
    send_numbers(broker, "posts", range(150))
    assert len(values(messages.batch())) == 150
    assert account(sketches.batch() or [])["read"] == 150
    lose_tail(broker, "posts", 100)
    send_numbers(broker, "posts", range(1_000, 1_200))
    for query in (messages, sketches):
        restarted = Query(
            broker, query.log, None if query is messages else stream, **subscribed(query is messages)
        )
        for one in (query, restarted):
            with pytest.raises(LogTruncated, match=r"posts\[0\].* 50 messages .*option truncated"):
                one.batch()
    further = Query(broker, messages.log, subscribe="posts", truncated="continue")
    assert [plain_json.loads(value)["n"] for value in values(further.batch())] == list(range(1_000, 1_200))
    assert further.last.truncated == 50 and further.batch() is None
    further = Query(broker, sketches.log, stream, truncated="continue")
    assert account(further.batch() or [])["read"] == 350
    assert further.last.account().truncated == 50
    send_numbers(broker, "posts", range(10))
    assert account(further.batch() or [])["read"] == 360 and further.last.truncated == 50
    # What releases without epochs have logged is gone on with.
    older = [{name: value for name, value in end.items() if name != "epochs"} for end in further.log]
    send_numbers(broker, "posts", range(10))
    assert account(Query(broker, older, stream).batch() or [])["read"] == 370


def subscribed(messages: bool) -> dict[str, str]:
    return {"subscribe": "posts"} if messages else {}
