"""Rows that are sent on to a real topic: each once, in their order, whatever becomes of the workers."""

from __future__ import annotations

import json as plain_json
import os
import signal
import uuid
from collections import defaultdict
from typing import Any

import polars as pl
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as KafkaPartition

from streamgauge.operators.consumer.forwarding_options import check_forwarding
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run, start
from streamgauge.operators.consumer.worker.delivery import AtMostOnce
from streamgauge.operators.definition.definition_diff import DefinitionChanged
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.kafka.topics import admin, partitions_of
from streamgauge.operators.sketching.account import Account

from ...faulty_proxy import IMPATIENT
from ...waiting import readable, until
from .runs import run_and_ask

BROKEN = b"{"


def rows_of(address: str, topic: str) -> dict[tuple[str, int], list[tuple[int, Any, bytes | None]]]:
    """What readers of committed messages find: by the row's source partition, its offset, value and key."""
    readable(address, topic)
    consumer = Consumer({"bootstrap.servers": address, "group.id": "look", "enable.auto.commit": False})
    by_key: Any = defaultdict(list)
    try:
        for partition in range(partitions_of(admin({"bootstrap.servers": address}), topic)):
            consumer.assign([where := KafkaPartition(topic, partition, 0)])
            _, end = consumer.get_watermark_offsets(where, timeout=120)
            while consumer.position([where])[0].offset < end:
                message = consumer.poll(0.2)
                if message is not None and message.error() is None:
                    ((name, headers),) = message.headers()
                    source, of, offset = headers.decode().split("/")
                    row = int(offset), plain_json.loads(message.value()), message.key()
                    by_key[source, int(of)].append(row)
                    assert name == "source"
    finally:
        consumer.close()
    return by_key


class Orders:
    """Orders on a topic of two partitions; some can't be read, some are bad."""

    def __init__(self, kafka: Any) -> None:
        self.name = f"orders-{uuid.uuid4().hex[:8]}"
        self.address = kafka.bootstrap_servers
        kafka.create_topic(self.name, partitions=2)
        self.sent: list[list[bytes]] = [[], []]
        self.producer = Producer({"bootstrap.servers": self.address, "enable.idempotence": True})
        schema = {"user": pl.String, "n": pl.Int64}
        orders = Stream.from_kafka(
            self.name, value=json(schema), bootstrap_servers=self.address, config=IMPATIENT
        )
        self.good, self.bad = orders.with_columns(twice=pl.col("n") * 2).branch(pl.col("n") > 0)

    def send(self, n: int) -> None:
        for at in range(n):
            number = sum(map(len, self.sent))
            row = {"user": f"u{number % 7}", "n": number % 11 - 2}
            value = BROKEN if number % 100 == 99 else plain_json.dumps(row).encode()
            self.sent[at % 2].append(value)
            self.producer.produce(self.name, value, partition=at % 2)
        assert self.producer.flush(120) == 0

    def expected(self, good: bool) -> dict[tuple[str, int], list[tuple[int, Any, bytes | None]]]:
        by_key: Any = defaultdict(list)
        for partition, values in enumerate(self.sent):
            for offset, value in enumerate(values):
                row = {"n": 0} if value == BROKEN else plain_json.loads(value)
                if value != BROKEN and (row["n"] > 0) == good:
                    row = {**row, "twice": 2 * row["n"]}
                    by_key[self.name, partition].append((offset, row, row["user"].encode() if good else None))
        return by_key

    def account(self, good: bool) -> Account:
        read, dead = sum(map(len, self.sent)), sum(values.count(BROKEN) for values in self.sent)
        counted = sum(map(len, self.expected(good).values()))
        return Account(read, counted, read - counted - dead, 0, dead)


@pytest.mark.slow
@pytest.mark.kafka
def test_rows_are_sent_once_and_in_order_while_workers_are_killed(kafka: Any, monkeypatch: Any) -> None:
    orders = Orders(kafka)
    good, bad = f"{orders.name}.good", f"{orders.name}.bad"
    sending = orders.good.rows_to_kafka(good, key="user")
    options: dict[str, Any] = {"group_id": orders.name, "checkpoint_seconds": 0.1}
    running = start(sending, RunOptions(workers=2, **options))
    for round in range(4):
        orders.send(1_000)
        until(lambda round=round: running.summary().account.read > 1_000 * round)
        if round in (1, 2):
            os.kill(running.worker_pids[round % 2], signal.SIGKILL)
    until(lambda: running.summary().account.read == 4_000)
    running.stop()
    assert running.wait(120).account == orders.account(good=True)
    orders.send(500)
    summary = run_and_ask(sending, RunOptions(until="latest", **options))
    assert summary.account == orders.account(good=True) and summary.account.balanced and summary.lag == 0
    assert summary.windows().height == 0

    def in_order(result: Any) -> Any:
        # Of a partition, rows of one key are in one place, and there in their order.
        for rows in result.values():
            for user in {key for _, _, key in rows}:
                own = [offset for offset, _, key in rows if key == user]
                assert own == sorted(own)
        return {where: sorted(rows, key=lambda row: row[0]) for where, rows in result.items()}

    assert in_order(rows_of(orders.address, good)) == orders.expected(good=True)
    with pytest.raises(DefinitionChanged, match=rf"what is sent on changed from .* to {good} with the key"):
        run(orders.good.rows_to_kafka(bad), RunOptions(until="latest", **options))

    # The others go elsewhere, without a key: all rows of a partition stay in their order.
    others = orders.bad.rows_to_kafka(bad)
    kept = {"group_id": f"{orders.name}-bad", "until": "latest", "delivery": "at_least_once"}
    assert run(others, RunOptions(**kept)).account == orders.account(good=False)
    assert dict(rows_of(orders.address, bad)) == orders.expected(good=False)

    # At most once: places first, so what a dying worker held is gone, and nothing comes again.
    def die(self: AtMostOnce, rows: object) -> None:
        raise SystemError("struck by lightning")

    most = orders.good.rows_to_kafka(f"{orders.name}.most", key="user")
    requested: Any = {"group_id": f"{orders.name}-most", "until": "latest", "delivery": "at_most_once"}
    with monkeypatch.context() as patch:
        patch.setattr(AtMostOnce, "_send_rows", die)
        with pytest.raises(SystemError, match="lightning"):
            run(most, RunOptions(**requested))
    lost = len(orders.sent[0])
    orders.send(300)
    account = run(most, RunOptions(**requested)).account
    results = in_order(rows_of(orders.address, f"{orders.name}.most"))
    assert account.balanced and account.counted == sum(map(len, results.values())) > 0
    wanted = orders.expected(good=True)
    for where, rows in results.items():
        assert rows == [row for row in wanted[where] if row[0] >= lost]


def test_what_means_nothing_without_windows_is_refused() -> None:
    rows = Stream.from_kafka("orders", value=json({"n": pl.Int64}))
    sending = rows.rows_to_kafka("good")
    for options, said in (
        ({"delivery": "effectively_once"}, 'use "exactly_once", or "at_least_once"'),
        ({"on_window": print}, "on_window: the stream sends its rows to 'good', so it has no windows"),
        ({"emit": "both"}, "emit: the stream sends"),
        ({"dead_letters": "good"}, "is also the topic of dead letters"),
    ):
        with pytest.raises(ValueError, match=said):
            check_forwarding(sending, RunOptions(**options))
        check_forwarding(rows.tumbling("1m"), RunOptions(**options))
    check_forwarding(sending, RunOptions(delivery="at_most_once"))
