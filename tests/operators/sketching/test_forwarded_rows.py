"""Rows that are sent on: which, in what order, with what key, and what becomes of those that can't be."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from streamgauge.operators.definition.definition_diff import differences
from streamgauge.operators.definition.described_stream import described_stream
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.definition.tables import LookupTable
from streamgauge.operators.formats.avro.encode import as_avro
from streamgauge.operators.formats.encode import as_bytes, as_json
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.testing import StreamTester
from streamgauge.spark_udafs.kafka.stream_checks import check_sending

from ...cases import each

SCHEMA = {"user": pl.String, "n": pl.Int64, "tags": pl.List(pl.String), "at": pl.String}
ORDERS = Stream.from_kafka("orders", value=json(SCHEMA), time="at")
START = datetime(2026, 1, 1, tzinfo=UTC)


def rows(seed: int, n: int = 400) -> list[dict[str, Any]]:
    chance = random.Random(seed)
    return [
        {
            "user": chance.choice(["ann", "bob", "", None]),
            "n": chance.choice([None, -1, 0, 5, chance.randrange(2**40)]),
            "tags": chance.choice([None, [], ["x"], ["x", 'y"é', None]]),
            "at": (START + timedelta(seconds=number)).isoformat(),
        }
        for number in range(n)
    ]


@pytest.mark.slow
def test_rows_go_on_as_they_are_after_all_steps_and_the_rest_is_accounted_for() -> None:
    def worked(frame: pl.DataFrame) -> pl.DataFrame:
        if (frame["n"] == 5).any():
            raise ValueError("not five")
        return frame

    users = LookupTable.from_kafka("users", value=json({"country": pl.String}))
    stream = (
        ORDERS.filter(pl.col("n") > 0)
        .map_batches(worked, ORDERS.columns)
        .join(users, on="user", how="left")
        .explode("tags")
        .rows_to_kafka("out", key=["user", "country"])
    )
    tester = StreamTester(stream, partitions=2)
    tester.feed_lookup("users", {"ann": {"country": "FI"}})
    wanted, account = [], Account()
    for partition in range(2):
        given = rows(partition)
        fed = tester.feed(given, partition=partition)
        dead = [row["n"] == 5 for row in given]
        kept = [row["n"] is not None and row["n"] > 0 and row["n"] != 5 for row in given]
        counted = sum(kept)
        assert fed == Account(400, counted, 400 - counted - sum(dead), 0, sum(dead))
        account += fed
        for offset, (row, sent) in enumerate(zip(given, kept)):
            for tag in (row["tags"] or [None]) if sent else ():
                country = "FI" if row["user"] == "ann" else None
                value = {**row, "tags": tag, "country": country}
                wanted.append((f"orders/{partition}/{offset}", value, [row["user"], country]))
    sent = tester.sent()
    assert [
        (dict(message.headers)["source"].decode(), _read(message.value), _read(message.key))
        for message in sent
    ] == wanted
    assert tester.account == account and account.balanced
    assert all(message.topic == "out" and message.partition == -1 for message in sent)
    assert "not five" in tester.refused[0].reason and tester.sent() == []
    assert tester.finish().windows().height == 0 and tester.figures().account == account


def _read(text: bytes | None) -> Any:
    import json as plain

    return None if text is None else plain.loads(text)


def test_event_time_means_nothing_unless_rows_are_compared() -> None:
    late = [{"user": "a", "n": 1, "at": at} for at in ("2026-01-01T01:00:00Z", "2020-01-01", None, "soon")]
    assert StreamTester(ORDERS.rows_to_kafka("out")).feed(late) == Account(4, 4)
    once = ORDERS.deduplicate("n", within="10m").select("user").rows_to_kafka("out", delay="1h")
    tester = StreamTester(once, start=START + timedelta(hours=3))
    fed = tester.feed(
        [
            {"user": user, "n": n, "at": (START + timedelta(minutes=minute)).isoformat()}
            for user, n, minute in [("a", 1, 100), ("b", 1, 105), ("c", 2, 46), ("d", 3, 39), ("e", 1, 200)]
        ]
        + [{"user": "f", "n": 9, "at": None}]
    )
    assert fed == Account(read=6, counted=3, filtered=1, late=1, dead_lettered=1)
    assert [message.value for message in tester.sent()] == [b'{"user":"a"}', b'{"user":"c"}', b'{"user":"e"}']
    assert [late.offset for late in tester.late] == [3]


def test_a_message_whose_row_can_not_be_encoded_is_a_dead_letter_as_a_whole() -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "tags", "type": "string"}]}
    stream = ORDERS.explode("tags").rows_to_kafka("out", value=as_avro(schema))
    tester = StreamTester(stream)
    given = [["x"], ["x", None, "y", None], None, ["z", "z"]]
    fed = tester.feed([{"user": "a", "n": n, "tags": tags} for n, tags in enumerate(given)])
    assert fed == Account(read=4, counted=2, dead_lettered=2)
    assert [message.value for message in tester.sent()] == [b"\x02x", b"\x02z", b"\x02z"]
    assert [row.offset for row in tester.refused] == [1, 2]
    assert all("can't be sent on" in row.reason for row in tester.refused)


def test_rows_without_a_key_go_to_one_partition() -> None:
    tester = StreamTester(ORDERS.rows_to_kafka("out", value=as_bytes("user")), partitions=3)
    for partition in range(3):
        tester.feed([{"user": str(partition)}, {"user": None}], partition=partition)
    assert [(message.partition, message.value) for message in tester.sent()] == [
        (0, b"0"), (0, None), (1, b"1"), (1, None), (2, b"2"), (2, None)
    ]  # fmt: skip


def test_two_joined_streams_are_sent_as_pairs() -> None:
    time = pl.from_epoch("at")
    orders = Stream.from_kafka("orders", value=json({"id": pl.Int64, "at": pl.Int64}), time=time)
    paid = Stream.from_kafka("paid", value=json({"id": pl.Int64, "sum": pl.Int64, "at": pl.Int64}), time=time)
    both = orders.join(paid, on="id", within="1m", suffix="_paid").rows_to_kafka("out", key="id")
    tester = StreamTester(both)
    at = int(START.timestamp())
    tester.feed([{"id": 1, "at": at}, {"id": 2, "at": at}], topic="orders")
    tester.feed([{"id": 2, "sum": 7, "at": at + 5}], topic="paid")
    (sent,) = tester.sent()
    assert (sent.key, _read(sent.value)["sum"], sent.headers) == (b"2", 7, [])


@each(
    ("make", "said"),
    [
        (lambda: ORDERS.rows_to_kafka("a b"), "'a b' is not the name of a topic"),
        (lambda: ORDERS.rows_to_kafka("orders"), "the stream reads 'orders'"),
        (lambda: ORDERS.rows_to_kafka("out", key="nope"), "the key 'nope' is not a column"),
        (lambda: ORDERS.rows_to_kafka("out", value=as_bytes("nope")), "'nope' is not a column"),
        (lambda: ORDERS.rows_to_kafka("out", value=as_bytes("n")), "of type Int64, not String or Binary"),
        (lambda: ORDERS.rows_to_kafka("out", value="json"), "value must be an encoder: as_json()"),
        (lambda: ORDERS.group_by("user").rows_to_kafka("out"), "write key= in place of group_by"),
        (lambda: ORDERS.tumbling("1m").rows_to_kafka("out"), "windows already"),
        (
            lambda: ORDERS.rows_to_kafka("out").tumbling("1m"),
            "write .tumbling(...) before .rows_to_kafka(...)",
        ),
        (
            lambda: ORDERS.rows_to_kafka("out").filter(pl.col("n") > 1),
            "write .filter(...) before .rows_to_kafka",
        ),
        (lambda: ORDERS.rows_to_kafka("out").rows_to_kafka("more"), "sent to 'out', which ends a stream"),
        (lambda: ORDERS.rows_to_kafka("out").group_by("user"), "write .group_by(...) before"),
        (
            lambda: check_sending(ORDERS.rows_to_kafka("out"), False, None),
            "on_spark: the stream sends its rows to 'out'",
        ),
        (
            lambda: check_sending(ORDERS.rows_to_kafka("out"), True, "out"),
            "is also the topic of dead letters",
        ),
        (lambda: described_stream(ORDERS.rows_to_kafka("out").definition()), "has no table to query"),
    ],
)
def test_what_can_not_be_sent_is_said_where_it_is_written(make: Any, said: str) -> None:
    with pytest.raises((ValueError, TypeError)) as error:
        make()
    assert said in str(error.value)


def test_where_rows_go_is_part_of_the_definition() -> None:
    one, other = ORDERS.rows_to_kafka("out", value=as_json()), ORDERS.rows_to_kafka("out", key="user")
    assert one.fingerprint() == other.fingerprint() != ORDERS.tumbling("1m").fingerprint()
    (said,) = differences(one.definition(), other.definition())
    assert said.endswith("with the key user")
