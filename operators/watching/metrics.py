"""A run's figures in Prometheus's form, with its conventions for names, units and labels.

Counters of messages are for the whole group, so several processes of a group report the same: use ``max by
(group)``, not the sum. Metrics of a single process say so in their help texts.

Each input partition has three series, for at most `PARTITIONS` partitions, and a fourth while a transaction
holds it back; totals cover all partitions.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from weakref import WeakKeyDictionary

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from .figures import Figures
from .health import Health
from .outlet_counts import counts_by_title

PARTITIONS = 1_000
"""The number of a run's input partitions that get series of their own."""

Watched = Callable[[], tuple[Figures, Health]]
"""Returns a run's current figures and health."""


class RunCollector(Collector):
    """The metrics of all runs that share a registry.

    >>> registry = CollectorRegistry()
    >>> stop = watch(registry, lambda: (Figures(group="g"), Health(True, True)))
    >>> registry.get_sample_value("streamgauge_ready", {"group": "g"})
    1.0
    >>> stop()
    >>> registry.get_sample_value("streamgauge_ready", {"group": "g"}) is None
    True
    """

    def __init__(self) -> None:
        self.runs: list[Watched] = []

    def collect(self) -> Iterator[Metric]:
        """All metrics, each with the samples of all runs."""
        return families([watched() for watched in list(self.runs)])


_collectors: WeakKeyDictionary[CollectorRegistry, RunCollector] = WeakKeyDictionary()
_lock = threading.Lock()


def watch(registry: CollectorRegistry, watched: Watched) -> Callable[[], None]:
    """Expose a run in a registry; returns a function that ends this. Several runs may share a registry."""
    with _lock:
        if registry not in _collectors:
            _collectors[registry] = RunCollector()
            registry.register(_collectors[registry])
        collector = _collectors[registry]
        collector.runs.append(watched)

    def stop() -> None:
        with _lock:
            if watched in collector.runs:
                collector.runs.remove(watched)
            if not collector.runs and _collectors.get(registry) is collector:
                registry.unregister(collector)
                del _collectors[registry]

    return stop


def families(runs: Iterable[tuple[Figures, Health]]) -> Iterator[Metric]:
    """The metrics of runs, by name."""
    runs = list(runs)
    yield from _messages(runs)
    yield from _inputs(runs)
    yield from _totals(runs)
    yield from _work(runs)
    yield from _outlets()


_Runs = list[tuple[Figures, Health]]

_OUTCOMES = ("counted", "filtered", "late", "dead_lettered")


def _messages(runs: _Runs) -> Iterator[Metric]:
    read = _counter("messages_read", "Messages that the group has read.", ["group"])
    outcomes = _counter("messages", "Messages of the group by outcome.", ["group", "outcome"])
    for figures, _ in runs:
        read.add_metric([figures.group], figures.account.read)
        for outcome in _OUTCOMES:
            outcomes.add_metric([figures.group, outcome], getattr(figures.account, outcome))
    yield read
    yield outcomes


def _inputs(runs: _Runs) -> Iterator[Metric]:
    labels = ["group", "topic", "partition"]
    lag = _gauge("partition_lag_messages", "Messages that wait in an input partition.", labels)
    mark = _gauge("partition_watermark_timestamp_seconds", "Event time that a partition has reached.", labels)
    held = _gauge(
        "partition_held_back_messages", "Messages that an open transaction holds back in a partition.", labels
    )
    idle = _gauge("partition_idle", "1 if a partition is idle and holds no window open.", labels)
    for figures, _ in runs:
        for (topic, partition), own in sorted(figures.inputs.items())[:PARTITIONS]:
            values = [figures.group, topic, str(partition)]
            if own.lag is not None:
                lag.add_metric(values, own.lag)
            if own.watermark_us is not None:
                mark.add_metric(values, own.watermark_us / 1e6)
            if own.held_back:
                held.add_metric(values, own.held_back)
            idle.add_metric(values, float(own.idle))
    yield from (lag, mark, held, idle)


_Value = Callable[[Figures, Health], float | None]

_TOTALS: dict[str, tuple[str, _Value]] = {
    "messages_unaccounted": (
        "Messages read that the account lacks or counts twice; always 0.",
        lambda f, _: f.unaccounted,
    ),
    "lag_messages": ("Messages that wait in the input.", lambda f, _: f.lag),
    "watermark_timestamp_seconds": (
        "Event time up to which windows are closed.",
        lambda f, _: None if f.watermark_us is None else f.watermark_us / 1e6,
    ),
    "watermark_lag_seconds": ("Seconds from the watermark to the wall clock.", lambda f, _: f.watermark_lag),
    "open_windows": ("Windows that are open in this process.", lambda f, _: f.open_windows),
    "open_groups": ("Groups of the windows that are open in this process.", lambda f, _: f.open_groups),
    "state_bytes": ("Bytes of the windows that are open in this process.", lambda f, _: f.state_bytes),
    "kept_bytes": (
        "Bytes of ids that were seen and of joined tables, in this process and its workers.",
        lambda f, _: f.work.kept_bytes,
    ),
    "join_rows_held_up": (
        "Rows that wait for a silent partner of a join to say that they have none.",
        lambda f, _: f.work.held_up,
    ),
    "replayed_messages": (
        "Messages of the table topic, from the oldest open window on, that a restart reads again.",
        lambda f, _: f.replayed,
    ),
    "since_progress_seconds": ("Seconds since the last message was counted.", lambda f, _: f.since_progress),
    "stalled_seconds": (
        "Seconds for which messages have waited and none was counted.",
        lambda f, _: f.stalled_seconds,
    ),
    "assigned_partitions": (
        "Input partitions of this process's workers.",
        lambda f, _: len(f.work.assigned),
    ),
    "healthy": ("0 if the run failed, or makes no progress although messages wait.", lambda _, h: h.healthy),
    "ready": ("1 once every partition has a worker and the log was read to its end.", lambda _, h: h.ready),
}

_COUNTS: dict[str, tuple[str, Callable[[Figures], int]]] = {
    "messages_skipped": (
        "Offsets that the group has left out on request.",
        lambda f: f.account.skipped,
    ),
    "messages_missed": (
        "Late messages of the group that reach no topic of late messages.",
        lambda f: f.missed,
    ),
    "messages_truncated": (
        "Messages that were counted and that their log has lost since.",
        lambda f: f.account.truncated,
    ),
    "duplicate_deltas": ("Deltas left out since their range was counted already.", lambda f: f.duplicates),
    "overlapping_deltas": (
        "Deltas that counted messages twice; at_least_once only.",
        lambda f: f.overlaps,
    ),
    "closed_windows": ("Windows that this process has emitted.", lambda f: f.closed_windows),
    "rebalances": (
        "Times that partitions were assigned to or revoked from this process.",
        lambda f: f.work.rebalances,
    ),
}


def _totals(runs: _Runs) -> Iterator[Metric]:
    for name, (text, value) in _TOTALS.items():
        family = _gauge(name, text, ["group"])
        for figures, health in runs:
            if (amount := value(figures, health)) is not None:
                family.add_metric([figures.group], float(amount))
        yield family
    for name, (text, count) in _COUNTS.items():
        counter = _counter(name, text, ["group"])
        for figures, _ in runs:
            counter.add_metric([figures.group], count(figures))
        yield counter


def _work(runs: _Runs) -> Iterator[Metric]:
    durations = _histogram("checkpoint_duration_seconds", "Durations of checkpoints of this process.")
    size = _histogram("delta_size_bytes", "Bytes of each delta that this process has sent.")
    for figures, _ in runs:
        for family, buckets in ((durations, figures.work.checkpoints), (size, figures.work.deltas)):
            counted = [
                ("+Inf" if bound == float("inf") else str(bound), count)
                for bound, count in buckets.cumulative
            ]
            family.add_metric([figures.group], counted, buckets.total)
    yield from (durations, size)


def _gauge(name: str, text: str, labels: list[str]) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"streamgauge_{name}", text, labels=labels)


def _outlets() -> Iterator[Metric]:
    labels = ["outlet", "result"]
    counts = _counter("outlet_alerts", "Alerts of this process's outlets by outcome.", labels)
    pending = _gauge("outlet_pending_alerts", "Alerts that wait in an outlet.", labels[:1])
    for title, numbers in sorted(counts_by_title().items()):
        for result in ("sent", "failed", "silenced", "unmatched"):
            counts.add_metric([title, result], numbers[result])
        pending.add_metric([title], numbers["pending"])
    yield from (counts, pending)


def _counter(name: str, text: str, labels: list[str]) -> CounterMetricFamily:
    return CounterMetricFamily(f"streamgauge_{name}", text, labels=labels)


def _histogram(name: str, text: str) -> HistogramMetricFamily:
    return HistogramMetricFamily(f"streamgauge_{name}", text, labels=["group"])
