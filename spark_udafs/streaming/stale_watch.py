"""Watch a running query's topic for a lack of new messages."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException

from ...operators.definition.stream import Stream
from ...operators.kafka.retry import Stopped
from ...operators.rules.alerting import Alerting
from ...operators.rules.stale_feed import StaleFeed
from ...operators.whole_file import whole_file
from ...operators.windows.durations import microseconds
from ..kafka.cluster import Cluster
from ..kafka.options import KafkaOptions
from .alert_sender import AlertSender

log = logging.getLogger("streamgauge.kafka")

_MOST_SECONDS = 5.0
"""The longest wait between two checks."""


class StaleWatch(threading.Thread):
    """Fires an alert when no message has come to an active query's topic for as long as `alerting` says.

    A query runs no micro-batch while nothing arrives, so this polls the ends of the topic's partitions, by
    the wall clock. `file`, which belongs to the query, stores whether the alert is active and how many fired.
    """

    def __init__(
        self, stream: Stream, alerting: Alerting, file: Path, config: Mapping[str, Any], query: Any
    ) -> None:
        super().__init__(name="streamgauge-stale", daemon=True)
        assert alerting.stale is not None
        self._alerting, self._file, self._query = alerting, file, query
        self._feed = StaleFeed(alerting.stale, alerting.app)
        self._n_alerts = 0
        # The alert fires at most a quarter of that time too late.
        self._pause = min(_MOST_SECONDS, microseconds(alerting.stale) / 4e6)
        self._options = KafkaOptions.parse({}, stream, stream.reading.kafka_sources[0].settings)
        self._sender = AlertSender(config, file.stem, lambda: not query.isActive)

    def run(self) -> None:
        """See `threading.Thread`."""
        if self._file.exists():
            kept = json.loads(self._file.read_text(encoding="utf-8"))
            self._feed.on, self._n_alerts = kept["on"], kept["alerts"]
        cluster = Cluster(self._options)
        try:
            while self._query.isActive:
                self._look(sum(cluster.ends(cluster.partitions()).values()))
                time.sleep(self._pause)
        except (KafkaException, LookupError, OSError) as error:
            # The query reports problems with the topic itself.
            if self._query.isActive:
                log.error("alerts about missing messages are off from now on: %s", error)
        except Stopped:
            pass
        finally:
            cluster.close()

    def _look(self, written: int) -> None:
        alerts = self._feed.update(written, time.time())
        if not alerts:
            return
        if messages := self._alerting.deliver(alerts):
            self._sender.send(messages, self._n_alerts)
        self._n_alerts += 1
        keep(self._file, {"on": self._feed.on, "alerts": self._n_alerts})


def keep(file: Path, kept: Mapping[str, Any]) -> None:
    """Write a file atomically: entirely, or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(file) as unfinished:
        unfinished.write_text(json.dumps(kept), encoding="utf-8")
