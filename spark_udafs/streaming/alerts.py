"""Apply rules to the windows that a Spark query closes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...operators.definition.stream import Stream
from ...operators.kafka.outgoing_message import Outgoing
from ...operators.kafka.topics import admin, ensure_topic
from ...operators.rules.alerting import Alerting
from ...operators.rules.outlets.outlet import NotifyingOutlet, all_at_once
from ...operators.secrets import Settings
from ...operators.sinks.sink import ClosedWindow, Origin, PartitionSink, RunProgress
from ...operators.table.schema import ArrowStream, arrow_table
from ...operators.table.window_groups import WindowGroups
from .alert_sender import AlertSender
from .sinks import Batch
from .stale_watch import StaleWatch, keep


class AlertingSink:
    """Apply rules to the windows that a query closes, with the same alerts as a consumer's run.

    The state of the rules is a file in `folder`, which belongs to the query like its checkpoint, with the
    number of the micro-batch: a batch that is repeated after a crash begins with the state before it. Rules
    such as `Absence`, which act as time passes, follow the query's watermark, whether or not windows close.
    Alerts to topics are sent once, in a transaction that records the batch's number; other outlets may get
    the alerts of the last batch again, with the same ids. `config` has librdkafka's settings for the topics,
    including `bootstrap.servers`; by default the stream's.

    Raises `ValueError` for rules that don't suit the stream.

    >>> from tempfile import mkdtemp
    >>> import polars as pl
    >>> import streamgauge as sg
    >>> rows = sg.Stream.from_schema({"at": pl.Int64}, time=pl.from_epoch("at"))
    >>> by_minute = rows.tumbling("1m").agg(n=sg.count())
    >>> alerting = sg.rules.Alerting([sg.rules.Threshold("busy", value="n", at_least=2)])
    >>> sink = sg.spark.AlertingSink(by_minute, alerting, mkdtemp())
    >>> tester = sg.StreamTester(by_minute)
    >>> _ = tester.feed([{"at": 1_767_225_600}] * 2)
    >>> sink(tester.finish().tables(), sg.spark.Batch(query="posts", number=0))
    2026-01-01T00:01:00+00:00 busy fired: n is 2: at least 2
    """

    clocked = True

    def __init__(
        self,
        stream: Stream,
        alerting: Alerting,
        folder: str | Path,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self._stream = stream
        self._alerting = alerting
        self._folder = Path(folder)
        self._config = Settings(config or {})
        self._sender: AlertSender | None = None
        self._last: tuple[Batch, str | None, PartitionSink] | None = None
        """The latest finished micro-batch, the stored state before it, and the rules after it."""
        self._begin(Origin.of(stream, "", named=True))

    def __call__(self, table: ArrowStream, batch: Batch) -> None:
        """Evaluate the rules on a batch's windows, and send the resulting alerts."""
        origin = Origin.of(self._stream, batch.query, named=True)
        folding = self._alerting.for_partition(origin, 0)
        kept = self._kept(batch)
        before = kept["memory"] if kept["batch"] < batch.number else kept["before"]
        if before is not None:
            folding.restore(before)
        windows = arrow_table(table)
        messages: list[Outgoing] = []
        if windows.num_rows:
            messages += folding.update(ClosedWindow(WindowGroups.of_table(windows), 0, True, origin))
        if batch.closed_us is not None:
            messages += folding.advance(RunProgress(batch.closed_us, batch.closed_us, 0, 0.0))
        if not (windows.num_rows or messages) and folding.state() == before:
            self._last = batch, before, folding
            return
        if messages:
            self._sender = self._sender or AlertSender(self._config, self._name(batch.query))
            self._sender.send(messages, batch.number)
        self._keep(batch, before, folding)

    def _keep(self, batch: Batch, before: str | None, folding: PartitionSink) -> None:
        self._last = batch, before, folding
        keep(self._file(batch), {"batch": batch.number, "before": before, "memory": folding.state()})

    def _send_rest(self) -> None:
        """Send pending alerts and record them as sent, or the next run would send them again."""
        if self._last is None or not self._alerting.notifying:
            return
        all_at_once(self._alerting.outlets, NotifyingOutlet.flush)
        self._keep(*self._last)

    def beside(self, query: Any) -> None:
        """Send pending alerts to people when the query has ended.

        Until then, watch the query's topic if missing messages should fire an alert. See
        `spark_udafs.streaming.run.write`, which calls it.
        """
        query.at_end(self._send_rest)
        if self._alerting.stale is not None:
            name = f"{self._name(str(query.id))}-stale"
            StaleWatch(
                self._stream, self._alerting, self._folder / f"{name}.json", self._config, query
            ).start()

    def _name(self, query: str) -> str:
        return f"{self._alerting.name}-{query}"

    def _begin(self, origin: Origin) -> None:
        topics = self._alerting.topics(origin, 1)
        if not self._config and (topics or self._alerting.stale is not None):
            self._config = self._stream.reading.kafka_sources[0].settings
        if not topics:
            return
        client = admin(self._config)
        for topic in topics:
            ensure_topic(client, topic.name, topic.partitions or 1, topic.config)

    def _file(self, batch: Batch) -> Path:
        return self._folder / f"{self._name(batch.query)}.json"

    def _kept(self, batch: Batch) -> dict[str, Any]:
        try:
            state: dict[str, Any] = json.loads(self._file(batch).read_text(encoding="utf-8"))
            return state
        except FileNotFoundError:
            return {"batch": -1, "before": None, "memory": None}
