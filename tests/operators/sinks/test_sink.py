"""What the sinks make of a stream's windows, without a broker: messages, files, tables."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from streamgauge import AnswersToKafka, SketchesToKafka, SketchesToParquet
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.definition.aggregates import count, distinct
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.kafka.chunked_records import ChunkAssembler, split_value
from streamgauge.operators.sinks import sketches_to_kafka
from streamgauge.operators.sinks.sink import ClosedWindow, Origin, topics_of
from streamgauge.operators.table.query import query
from streamgauge.operators.table.schema import from_ipc, read_parquet
from streamgauge.operators.table.sketch_table import merge
from streamgauge.operators.table.window_groups import WindowGroups
from streamgauge.operators.testing import StreamTester

SCHEMA = {"at": pl.Int64, "tag": pl.String, "user": pl.Int64}
ROWS = Stream.from_schema(SCHEMA, time=pl.from_epoch("at"))
BY_TAG = ROWS.group_by("tag").tumbling("1m", delay="0s").agg(n=count(), users=distinct("user"))
START = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())


def posts(seed: int, minutes: int = 4, each: int = 200) -> list[dict[str, Any]]:
    random = np.random.default_rng(seed)
    tags = [None, "", "a", "ä", "x,y"]
    return [
        {"at": START + 60 * minute + second % 60, "tag": tags[random.integers(5)], "user": second % 37}
        for minute in range(minutes)
        for second in range(each)
    ]


def counted(rows: list[dict[str, Any]]) -> dict[tuple[str, Any], tuple[int, int]]:
    """Rows and different users by window and tag, recomputed."""
    users: dict[tuple[str, Any], list[int]] = {}
    for row in rows:
        start = datetime.fromtimestamp(row["at"] // 60 * 60, UTC).isoformat()
        users.setdefault((start, row["tag"]), []).append(row["user"])
    return {key: (len(result), len(set(result))) for key, result in users.items()}


def test_answers_are_json_messages_keyed_by_their_group() -> None:
    rows = posts(1)
    tester = StreamTester(BY_TAG, sinks=[AnswersToKafka("answers"), SketchesToKafka()])
    tester.feed(rows)
    closed = [message for message in tester.sent() if message.topic == "answers"]
    rest = [message for message in tester.finish().sent() if message.topic == "answers"]
    by_key = {}
    for message in [*closed, *rest]:
        payload = json.loads(message.value or b"")
        assert message.key == (None if payload["tag"] is None else payload["tag"].encode())
        by_key[payload["window_start"], payload["tag"]] = payload["n"], round(payload["users"]["estimate"])
        assert payload["users"]["lower"] <= payload["users"]["estimate"] <= payload["users"]["upper"]
    assert by_key == counted(rows)
    assert len(closed) + len(rest) == len(by_key)
    assert {dict(m.headers)["final"] for m in closed} == {b"1"}
    assert {dict(m.headers)["final"] for m in rest} == {b"0"}


def test_a_window_of_many_groups_goes_to_the_table_in_parts_and_is_whole_again(monkeypatch) -> None:
    monkeypatch.setattr(sketches_to_kafka, "split_value", partial(split_value, largest=10_000))
    random = np.random.default_rng(2)
    stream = ROWS.group_by("user").tumbling("1m", delay="0s").agg(n=count(), tags=distinct("tag"))
    rows = [
        {"at": START, "tag": str(n), "user": int(user)} for n, user in enumerate(random.permutation(6_000))
    ]
    tester = StreamTester(stream, sinks=[SketchesToKafka()])
    tester.feed(rows)
    sent = tester.finish().sent()
    assert len(sent) > 2 and max(len(message.value or b"") for message in sent) <= 10_000
    gather, whole = ChunkAssembler(), []
    for at, message in enumerate(sent):
        assert (message.topic, message.partition) == (f"tester.windows.{stream.fingerprint()}", 0)
        whole.append(gather.add(message.value, message.headers, at)[1])
    assert [record is None for record in whole] == [True] * (len(sent) - 1) + [False]
    record = whole[-1]
    assert record is not None and {
        k: v for k, v in record.headers.items() if k not in ("sending", "part")
    } == {
        "kind": b"window",
        "fingerprint": stream.fingerprint().encode(),
        "start": b"%d" % (START * 1_000_000),
        "end": b"%d" % ((START + 60) * 1_000_000),
        "final": b"0",
    }
    assert from_ipc(record.value) == tester.tables()


def test_files_are_named_after_their_windows_and_replaced_by_those_that_come_again(tmp_path: Path) -> None:
    rows = posts(3)
    later = [{"at": START + 5, "tag": "a", "user": 99}]
    for _ in range(2):  # as after a crash: all windows come again
        tester = StreamTester(BY_TAG, sinks=[SketchesToParquet(tmp_path)])
        tester.feed(rows[:200])
        tester.advance(60)
        tester.feed([*later, *rows[200:]])
        tester.finish()
    files = sorted(tmp_path.rglob("*"))
    assert [str(file.relative_to(tmp_path))[:56] for file in files if file.is_file()] == [
        f"window_date=2026-01-01/20260101T000{minute}00Z-20260101T000{minute + 1}00Z" for minute in range(4)
    ]
    answers = query(merge(read_parquet(tmp_path)))
    reported = {
        (row["window_start"].isoformat(), row["tag"]): (row["n"], round(row["users"]["estimate"]))
        for row in answers.to_dicts()
    }
    assert reported == counted([*rows, *later])


def test_streams_that_ask_differently_share_a_folder(tmp_path: Path) -> None:
    for stream in (BY_TAG, ROWS.filter(pl.col("tag") == "a").tumbling("1m").agg(n=count())):
        for name in ("one", "two"):
            origin = Origin.of(stream, name, named=False)
            tester = StreamTester(stream)
            tester.feed(posts(4, 1))
            groups = WindowGroups.of_table(tester.finish().tables().to_arrow())
            SketchesToParquet(tmp_path).write(ClosedWindow(groups, 0, True, origin))
    # Runs on their own have another name each time, but what they ask stays.
    assert len(list(tmp_path.rglob("*.parquet"))) == 2
    named = {Origin.of(BY_TAG, name, named=True).digest for name in ("one", "two")}
    assert len(named) == 2


def test_runs_that_can_not_have_a_sink_are_refused() -> None:
    with pytest.raises(ValueError, match=r"SketchesToKafka\(\) needs a run with a group_id"):
        topics_of([SketchesToKafka()], Origin.of(BY_TAG, "generated", named=False))
    dated = ROWS.with_columns(window_date="tag").group_by("window_date").tumbling("1m").agg(n=count())
    with pytest.raises(ValueError, match="'window_date' is what its folders are named after"):
        topics_of([SketchesToParquet("out")], Origin.of(dated, "group", named=True))
    with pytest.raises(ValueError, match="must be a name, as in AnswersToKafka"):
        AnswersToKafka("")
    with pytest.raises(ValueError, match="retention must be a duration such as '7d', got '0s'"):
        SketchesToKafka(retention="0s")
    for wrong in (AnswersToKafka, "answers", [print], AnswersToKafka("answers")):
        with pytest.raises(TypeError, match="must be a list of sinks"):
            RunOptions(sinks=wrong)
    assert RunOptions(sinks=[AnswersToKafka("answers"), SketchesToParquet("out"), SketchesToKafka()]).sinks


def test_keys_and_values_that_json_does_not_have() -> None:
    schema = {"at": pl.Int64, "raw": pl.Binary, "price": pl.Float64}
    rows = Stream.from_schema(schema, time=pl.from_epoch("at")).group_by("raw", "price").tumbling("1m")
    tester = StreamTester(rows.agg(n=count()), sinks=[AnswersToKafka("answers")])
    tester.feed(
        [{"at": START, "raw": b"\x01\xff", "price": float("nan")}, {"at": START, "raw": None, "price": 1.5}]
    )
    sent = {message.key: json.loads(message.value or b"")["n"] for message in tester.finish().sent()}
    assert sent == {b'["01ff","NaN"]': 1, b"[null,1.5]": 1}
