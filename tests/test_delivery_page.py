"""What the page on delivery shows works as it stands, against a real broker."""

from __future__ import annotations

import json
import re
import uuid
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from .waiting import until

PAGE = Path(__file__).resolve().parents[1] / "docs" / "delivery.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S)
MINUTES, EACH = 4, 60


def rows() -> list[dict[str, Any]]:
    return [
        {"at": 1_767_225_600 + 60 * minute + n, "lang": "de"}
        for minute in range(MINUTES)
        for n in range(EACH)
    ]


@pytest.mark.slow
@pytest.mark.kafka
def test_a_group_with_sinks_grows_shrinks_ends_and_is_reset(kafka: Any, tmp_path: Path) -> None:
    from confluent_kafka import Producer

    from streamgauge import Stream, count, merge, query
    from streamgauge import json as of_json
    from streamgauge.operators.table.stored import read

    topic = f"page-{uuid.uuid4().hex[:8]}"
    kafka.create_topic(topic, 2)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})
    for n, row in enumerate(rows()):
        producer.produce(topic, json.dumps(row), partition=n % 2)
    producer.flush()
    source = Stream.from_kafka(
        topic,
        value=of_json({"at": pl.Int64, "lang": pl.String}),
        time=pl.from_epoch("at"),
        bootstrap_servers=kafka.bootstrap_servers,
    )
    names: dict[str, Any] = {"posts": source.group_by("lang").tumbling("1m", delay="0s").agg(posts=count())}
    lines = BLOCKS[0].replace("by-minute", topic).replace('"windows"', repr(str(tmp_path / "windows")))
    lines = lines.replace('"answers"', repr(f"{topic}.answers"))
    lines = lines.replace('"earliest")', f'"earliest", bootstrap_servers={kafka.bootstrap_servers!r})')
    before, after = lines.split("run.scale(4)")
    exec(before, names)
    until(lambda: names["run"].summary().account.read == MINUTES * EACH)
    exec(f"run.scale(4){after}", names)
    assert names["summary"].account.counted == MINUTES * EACH
    answers = query(merge(read(tmp_path / "windows")))
    # The last minute may still get rows, unless silence has closed it meanwhile: then it is there, whole.
    assert answers["posts"].to_list() in ([EACH] * (MINUTES - 1), [EACH] * MINUTES)
    assert (
        names["posts"].run(group_id=topic, until="latest", idle_seconds=60.0).account.counted
        == MINUTES * EACH
    )  # again, as it was reset


def test_a_sink_of_ones_own(tmp_path: Path) -> None:
    from streamgauge import Stream, StreamTester, count

    names: dict[str, Any] = {}
    exec(BLOCKS[1], names)
    stream = Stream.from_schema({"at": pl.Int64, "lang": pl.String}, time=pl.from_epoch("at"))
    by_minute = stream.tumbling("1m", delay="0s").agg(posts=count())
    for _ in range(2):
        tester = StreamTester(by_minute, sinks=[names["ToJson"](tmp_path / "json")])
        tester.feed(rows())
        tester.finish()
    files = sorted((tmp_path / "json").iterdir())
    assert [json.loads(file.read_text())[0]["posts"] for file in files] == [EACH] * MINUTES
