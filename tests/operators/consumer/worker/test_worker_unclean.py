"""An unclean election on three brokers: what a run has counted of it is in its account."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from streamgauge.apps.dev.kafka.cluster import EmbeddedCluster
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import start
from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.kafka.reader import LogTruncated
from streamgauge.operators.sketching.account import Account

from ....waiting import until

pytestmark = [pytest.mark.kafka, pytest.mark.soak]


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(3) as cluster:
        yield cluster


def test_an_unclean_election_is_found_and_accounted_for(cluster: EmbeddedCluster) -> None:
    config = {"bootstrap.servers": cluster.bootstrap_servers}
    admin = AdminClient({**config, "log_level": 0})
    loose = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
    # On two of the three brokers, so that the third and one of them are always enough to elect.
    wanted: Any = NewTopic("posts", 1, replica_assignment=[[1, 2]], config=loose)
    admin.create_topics([wanted])["posts"].result(60)
    source: Any = Stream.from_kafka(
        "posts", value=json({"n": pl.Int64}), bootstrap_servers=cluster.bootstrap_servers
    )
    stream = source.tumbling("1d").agg(posts=count())

    def send(n: int) -> None:
        producer = Producer({**config, "log_level": 0})
        for number in range(n):
            producer.produce("posts", b'{"n": %d}' % number, timestamp=1_700_000_000_000)
        assert producer.flush(120) == 0

    def led(leader: int, in_sync: set[int]) -> bool:
        try:
            (partition,) = admin.list_topics("posts", timeout=15).topics["posts"].partitions.values()
        except (KafkaException, ValueError):
            return False
        return partition.leader == leader and set(partition.isrs) == in_sync

    until(lambda: led(1, {1, 2}))
    stopping = start(stream, RunOptions(group_id="stops"))
    going_on = start(stream, RunOptions(group_id="goes-on", truncated="continue"))
    send(100)
    cluster.nodes[1].kill()
    until(lambda: led(1, {1}))
    send(50)
    for run in (stopping, going_on):
        until(lambda run=run: run.summary().account.read == 150)
    cluster.nodes[0].kill()
    cluster.nodes[1].start()
    until(lambda: led(2, {2}))
    send(200)
    with pytest.raises(
        LogTruncated, match=r"posts\[0\].* 50 messages that were counted \(offsets 100 … 149\)"
    ):
        stopping.wait(120)
    until(lambda: going_on.summary().account.read == 350)
    going_on.stop()
    assert going_on.wait(120).account == Account(read=350, counted=350, truncated=50)
