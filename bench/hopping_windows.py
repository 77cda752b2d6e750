"""Hopping windows of 60 s by 1 s against tumbling ones of 60 s: what overlap costs with a broker.

3 M JSON messages of one minute of event time, in 4 partitions, are read from earliest to latest into counts,
distinct users and quantiles of prices, of all rows or by one of 100 groups. Kafka Streams makes 60 updates a
message for the hopping ones; here a row is sketched once, by the second, and the merger puts 120 windows
together of 60 panes. Both sides take turns; the ratio is the median of three pairs.

By groups, the panes are what is left of the difference: a second of a group has 500 rows, nearly all of
different users, so its sketches are hardly smaller than its rows. Of the processor's time beyond that of
tumbling windows, a quarter each goes into sketching 6,000 groups in place of 100, and into compressing 18 MB
of deltas and reading them; a sixth into merging them into panes, and three tenths into making 120 windows of
the panes, 73 MB that tumbling ones don't give. Tumbling windows of one second cost nearly as much. None of it
grows with the overlap. LZ4 in place of Zstandard would take off an eighth, for a log half as large again.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import polars as pl

from streamgauge import Stream, count, distinct, quantiles
from streamgauge import json as json_value
from streamgauge.apps.dev.kafka.broker import EmbeddedKafka

from .topic import MESSAGES, SCHEMA, filled

RUNS = 3


def spent(stream: Stream, windows: int) -> float:
    """Seconds of a run, from the call to the closed windows."""
    began = time.perf_counter()
    summary = stream.run(until="latest")
    elapsed = time.perf_counter() - began
    assert summary.account.counted == MESSAGES, summary.account
    assert len(summary.table.column("window_start").unique()) >= windows
    return elapsed


def main() -> list[dict[str, Any]]:
    """A row for all rows together, and one by groups."""
    collected = []
    with EmbeddedKafka() as broker:
        topic = filled(broker, "posts", MESSAGES)
        source = Stream.from_kafka(
            topic,
            value=json_value(SCHEMA),
            time=pl.from_epoch("ts", time_unit="ms"),
            bootstrap_servers=broker.bootstrap_servers,
        )
        aggregates = {"rows": count(), "users": distinct("user"), "prices": quantiles("price")}
        grouped = source.with_columns(group=pl.col("user").str.slice(-2)).group_by("group")
        for name, rows in (("all rows together", source), ("100 groups", grouped)):
            tumbling = rows.tumbling("60s").agg(**aggregates)
            hopping = rows.hopping("60s", every="1s").agg(**aggregates)
            pairs = [(spent(tumbling, 1), spent(hopping, 100)) for _ in range(RUNS)]
            one, other = (statistics.median(side) for side in zip(*pairs, strict=True))
            collected.append(
                {
                    "claim": f"hopping 60 s by 1 s, against tumbling 60 s: {name}",
                    "ours": f"{MESSAGES / other / 1e6:.2f} M/s",
                    "peer": f"{MESSAGES / one / 1e6:.2f} M/s",
                    "ratio": f"{statistics.median(b / a for a, b in pairs):.2f} × the cost",
                    "target": "≤ 1.5",
                }
            )
    return collected


if __name__ == "__main__":
    for row in main():
        print(row)
