"""A table's topic: tombstones, messages that can't be read, and what comes while a stream is running."""

from __future__ import annotations

import json as plain_json
import logging
import os
import signal
import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import polars as pl
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions

from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run, start
from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.definition.tables import LookupTable
from streamgauge.operators.formats.decode import Decoded
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.formats.messages import Messages
from streamgauge.operators.formats.retryable_error import Unavailable
from streamgauge.operators.kafka.topics import TopicError
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.steps.table_reader import TableReader
from streamgauge.operators.table.query import query
from streamgauge.operators.testing import StreamTester

from ...faulty_proxy import IMPATIENT
from ...waiting import until
from ..consumer.runs import Windows

VALUE = json({"country": pl.String})


def country(name: str) -> bytes:
    return plain_json.dumps({"country": name}).encode()


@pytest.mark.parametrize("cut", range(10))
def test_the_latest_message_of_a_key_is_its_row(cut: int, caplog: pytest.LogCaptureFixture) -> None:
    reported: list[tuple[bytes | None, bytes | None]] = [
        *((b"ann", country("FI")), (b"bob", country("NO")), (b"", country("SE")), (None, country("DK"))),
        *((b"ann", None), (b"bob", b"{"), (b"eve", country("EE")), (b"ann", country("LV")), (b"\xff", b"{}")),
    ]
    keys, values = zip(*reported)
    messages = Messages.of(values, keys, topic="users", first_offset=100)
    reader = TableReader(LookupTable.from_kafka("users", value=VALUE))
    for low, high in ((0, cut), (cut, 9)):
        if low < high:
            reader.update(messages.slice(low, high))
    result = reader.contents.gather(reader.contents.find([pl.Series(["ann", "bob", "", "eve", None, "x"])]))
    assert result["country"].to_list() == ["LV", None, "SE", "EE", None, None]
    said = [record.getMessage().removeprefix("a message of the table ") for record in caplog.records]
    assert len(said) == 3 and said[0] == "users[0] at offset 103 can't be used: it has no key"
    assert any(
        text.startswith("users[0] at offset 105 can't be used: its key has no row now: ") for text in said
    )
    assert any(r"at offset 108 can't be used: its key b'\xff' is not String" in text for text in said)


def test_keys_are_of_the_type_that_was_named() -> None:
    messages = Messages.of([country("FI"), country("NO"), country("SE")], [b"12", b"-7", b"x"])
    for kind, keys in ((pl.Int64, [12, -7, None]), (pl.Binary, [b"12", b"-7", b"x"])):
        reader = TableReader(LookupTable.from_kafka("users", value=VALUE, key=kind))
        reader.update(messages)
        result = reader.contents.gather(reader.contents.find([pl.Series(keys, dtype=kind)]))[
            "country"
        ].to_list()
        assert result == ["FI", "NO", None if kind == pl.Int64 else "SE"]


def test_keys_are_decoded_and_may_have_several_columns(caplog: pytest.LogCaptureFixture) -> None:
    key = json({"id": pl.Int64, "shop": pl.String})
    table = LookupTable.from_kafka("users", value=VALUE, key=key)
    reader = TableReader(table)
    reported = [
        (1, "a", "FI"),
        (1, "b", "NO"),
        (2, "a", "SE"),
        (None, "a", "DK"),
        (1, "a", "LV"),
        (2, "a", None),
    ]
    keys = [plain_json.dumps({"id": number, "shop": shop}).encode() for number, shop, _ in reported]
    values = [None if place is None else country(place) for *_, place in reported]
    messages = Messages.of([*values, country("EE"), country("EE")], [*keys, b"{", None], topic="users")
    reader.update(messages)
    result = reader.contents.find([pl.Series([1, 1, 2, None]), pl.Series(["a", "b", "a", "a"])])
    assert reader.contents.gather(result)["country"].to_list() == ["LV", "NO", None, None]
    said = [record.getMessage().rpartition("can't be used: ")[2] for record in caplog.records]
    assert len(said) == 3 and {"it has no key", "its key: a part of its key is null"} < {*said}
    rows = Stream.from_schema({"user": pl.Int32, "shop": pl.String, "at": pl.Datetime("us")}, time="at")
    tester = StreamTester(rows.join(table, on=["user", "shop"]).tumbling("1m").agg(n=count()))
    tester.feed_lookup("users", {(1, "a"): {"country": "FI"}, (2, "a"): None})
    at = datetime(2026, 1, 1)
    given = [{"user": user, "shop": shop, "at": at} for user, shop in ((1, "a"), (2, "a"), (1, None))]
    assert tester.feed(given) == Account(3, counted=1, filtered=2)
    with pytest.raises(ValueError, match="a key of 'users' has 2 columns, and on= names 1"):
        rows.join(table, on="user")


class Depot:
    """A decoder that needs something that is away at first."""

    schema = pl.Schema({"country": pl.String})

    def __init__(self) -> None:
        self.tries = 0

    def decode(self, messages: Messages) -> Decoded:
        self.tries += 1
        if self.tries < 3:
            raise Unavailable("the depot is closed")
        return Decoded(pl.DataFrame({"country": messages.text}))

    def definition(self) -> dict[str, int]:
        return {"version": 1}


def test_what_a_decoder_needs_is_waited_for() -> None:
    reader, alive = TableReader(LookupTable.from_kafka("users", value=Depot())), []
    reader._alive = lambda: alive.append(1)
    reader.update(Messages.of([b"FI"], [b"ann"]))
    assert reader.contents.gather(reader.contents.find([pl.Series(["ann"])]))["country"].to_list() == ["FI"]
    assert len(alive) == 2


class Kafka:
    """A topic of posts and a compacted one of users on a broker."""

    def __init__(self, kafka: Any) -> None:
        self.address = kafka.bootstrap_servers
        self.posts, self.users = (f"{name}-{uuid.uuid4().hex[:8]}" for name in ("posts", "users"))
        kafka.create_topic(self.posts, partitions=2)
        kafka.create_topic(self.users, partitions=2, config={"cleanup.policy": "compact"})
        self.producer = Producer({"bootstrap.servers": self.address, "enable.idempotence": True})
        self.sent = 0

    def update(self, rows: Mapping[str, str | None]) -> None:
        for key, name in rows.items():
            self.producer.produce(self.users, None if name is None else country(name), key)
        assert self.producer.flush(120) == 0

    def post(self, *authors: str) -> None:
        for author in authors:
            value = {"author": author, "at": f"2026-01-01T00:00:{self.sent % 50:02}Z"}
            self.producer.produce(self.posts, plain_json.dumps(value), partition=self.sent % 2)
            self.sent += 1
        assert self.producer.flush(120) == 0

    @property
    def stream(self) -> Stream:
        value = json({"author": pl.String, "at": pl.String})
        address = {"bootstrap_servers": self.address}
        rows = Stream.from_kafka(self.posts, value=value, time="at", config=IMPATIENT, **address)
        users = LookupTable.from_kafka(self.users, value=VALUE, **address)
        joined = rows.join(users, on="author", how="left").group_by("author", "country")
        return joined.tumbling("1m").agg(posts=count())


@pytest.mark.slow
@pytest.mark.kafka
def test_rows_meet_the_whole_table_and_what_it_becomes_while_a_worker_is_killed(kafka: Any) -> None:
    topics, windows = Kafka(kafka), Windows()
    users = [f"u{number}" for number in range(2_000)]
    topics.update({user: f"old {user}" for user in users})
    topics.update({user: f"new {user}" for user in users} | {"u3": None})
    topics.post(*users)
    options: dict[str, Any] = {"group_id": topics.posts, "on_window": windows, "checkpoint_seconds": 0.1}
    running = start(topics.stream, RunOptions(workers=2, idle_seconds=600.0, **options))
    until(lambda: running.summary().account.read == 2_000)
    os.kill(running.worker_pids[0], signal.SIGKILL)
    topics.update({"u1": "newest", "u2": None, "u3": "back", "late": "here"})
    probes = 0

    def met() -> bool:
        """Whether both partitions' workers have met the update; each look sends a row to each."""
        nonlocal probes
        topics.post("late", "late")
        probes += 2
        until(lambda: running.summary().account.read == 2_000 + probes)
        rows = query(running.table()).filter(author="late", country="here")
        return rows.height == 1 and rows["posts"][0] > probes // 2 + 1

    until(met)
    topics.post("u1", "u1", "u2", "u2", "u3", "u3", "u4", "u4")
    until(lambda: running.summary().account.read == 2_008 + probes)
    until(lambda: running.figures().work.kept_bytes > 2 * 2_000 * 20)  # two processes have the table
    running.stop()
    running.wait(120)
    summary = run(topics.stream, RunOptions(until="latest", **options))
    assert summary.account == Account(2_008 + probes, counted=2_008 + probes)
    rows = query(windows.table())
    result = {(author, place): n for author, place, n in rows.select("author", "country", "posts").rows()}
    wanted = {(user, None if user == "u3" else f"new {user}"): 1 for user in users}
    wanted[("u4", "new u4")] += 2
    wanted |= {("u1", "newest"): 2, ("u2", None): 2, ("u3", "back"): 2}
    assert {key: n for key, n in result.items() if key[0] != "late"} == wanted


@pytest.mark.kafka
def test_a_table_is_read_on_where_its_topic_gets_partitions_and_refused_where_there_is_none(
    kafka: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics = Kafka(kafka)
    topics.update({"ann": "FI"})
    reader = TableReader(topics.stream.reading.tables[0])
    calls = 0

    def alive() -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise TimeoutError("the group moved on")

    monkeypatch.setattr(reader, "_alive", alive)
    with caplog.at_level(logging.INFO, "streamgauge.kafka"):
        with pytest.raises(TimeoutError):
            reader.load()
        assert not reader.loaded
        reader.load()
    assert f"the table {topics.users} has 1 rows" in caplog.text
    admin = AdminClient({"bootstrap.servers": topics.address})
    admin.create_partitions([NewPartitions(topics.users, 12)])[topics.users].result(120)
    monkeypatch.setattr("streamgauge.operators.steps.table_reader._LOOK_SECONDS", 0.0)
    names = [f"name {number}" for number in range(50)]

    def all_there() -> bool:
        topics.update(dict.fromkeys(names, "SE"))
        reader.refresh()
        return len(reader.contents) == 51 and len(reader._reader._next) == 12

    until(all_there)
    reader.close()
    missing = LookupTable.from_kafka("nowhere", value=VALUE, bootstrap_servers=topics.address)
    rows = Stream.from_kafka(topics.posts, value=VALUE, bootstrap_servers=topics.address)
    stream = rows.join(missing, on="country").tumbling("1m").agg(n=count())
    with pytest.raises(TopicError, match="there is no topic 'nowhere'"):
        start(stream, RunOptions())
