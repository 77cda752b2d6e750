"""What streams save that share one reading: processor time a message, two together against two alone.

3 M JSON posts of 70 bytes in 4 partitions, and two questions about them: distinct users by minute, and the
top tags of dear posts by ten seconds. Together each message is fetched and decoded once; alone, one run
after the other, twice. Sketches, deltas and merging cost the same either way.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from streamgauge import Stream, count, distinct, run_together, top_k
from streamgauge import json as json_value
from streamgauge.apps.dev.kafka.broker import EmbeddedKafka

from .measure import line, medians
from .topic import MESSAGES, SCHEMA, filled

RUNS = 5


def streams(bootstrap: str, topic: str) -> dict[str, Stream]:
    """The two questions."""
    time = pl.from_epoch("ts", time_unit="ms")
    posts = Stream.from_kafka(topic, value=json_value(SCHEMA), time=time, bootstrap_servers=bootstrap)
    dear = posts.filter(pl.col("price") > 20)
    return {
        "users": posts.tumbling("1m").agg(posts=count(), users=distinct("user")),
        "tags": dear.tumbling("10s").agg(posts=count(), tags=top_k("tag", k=10)),
    }


def main() -> list[dict[str, Any]]:
    with EmbeddedKafka() as broker:
        both = streams(broker.bootstrap_servers, filled(broker, "posts", MESSAGES))

        def together() -> None:
            for summary in run_together(both, until="latest", progress=False).values():
                assert summary.account.read == MESSAGES, summary.account

        def alone() -> None:
            for stream in both.values():
                assert stream.run(until="latest", progress=False).account.read == MESSAGES

        shared, apart = medians(together, alone, runs=RUNS)
    ours, peer = (f"{seconds / MESSAGES * 1e6:.2f} µs" for seconds in (shared, apart))
    claim = "processor time a message: two streams with one reading, against each alone"
    return [line(claim, ours, peer, apart / shared, "report")]
