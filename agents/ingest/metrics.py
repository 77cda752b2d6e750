"""An agent's state as Prometheus metrics, and as one line in a terminal."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ...operators.watching.progress_line import short
from .account import IngestAccount
from .agent import Agent

_RATE_SECONDS = 5.0


def registry_of(agent: Agent) -> CollectorRegistry:
    """Return the metrics of an agent, which are computed on request."""
    registry = CollectorRegistry()
    registry.register(_Figures(agent))
    return registry


class _Figures(Collector):
    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics."""
        agent, labels = self._agent, ["agent", "source"]
        read = CounterMetricFamily("streamgauge_ingest_messages_read", "Messages read.", labels=labels)
        outcome = CounterMetricFamily(
            "streamgauge_ingest_messages",
            "Messages by outcome: sent, dead_lettered or dropped.",
            labels=[*labels, "outcome", "reason"],
        )
        for name, account in agent.accounts().items():
            read.add_metric([agent.plan.name, name], account.read)
            outcome.add_metric([agent.plan.name, name, "sent", ""], account.sent)
            outcome.add_metric([agent.plan.name, name, "dead_lettered", ""], account.dead_lettered)
            for reason, count in account.dropped.items():
                outcome.add_metric([agent.plan.name, name, "dropped", reason], count)
        under_way = GaugeMetricFamily(
            "streamgauge_ingest_messages_under_way", "Messages read and not committed yet.", labels=labels
        )
        since = GaugeMetricFamily(
            "streamgauge_ingest_since_commit_seconds",
            "Seconds since the last commit, for sources that have had one.",
            labels=labels,
        )
        commits = CounterMetricFamily(
            "streamgauge_ingest_commits", "Transactions, or what a sink has for them.", labels=labels
        )
        now = time.monotonic()
        for name, state in agent.states().items():
            under_way.add_metric([agent.plan.name, name], state.under_way)
            commits.add_metric([agent.plan.name, name], state.commits)
            if state.last_commit:
                since.add_metric([agent.plan.name, name], now - state.last_commit)
        held = GaugeMetricFamily(
            "streamgauge_ingest_held_messages", "Messages that channels hold.", labels=["agent"]
        )
        held.add_metric([agent.plan.name], agent.held)
        healthy = GaugeMetricFamily(
            "streamgauge_ingest_healthy",
            "0 if it failed, or what it has read can't be delivered.",
            labels=["agent"],
        )
        healthy.add_metric([agent.plan.name], float(agent.health().healthy))
        lag = GaugeMetricFamily(
            "streamgauge_ingest_kept_log_bytes",
            "Bytes of its log that a database keeps until they are delivered.",
            labels=labels,
        )
        for name, size in agent.lag_bytes().items():
            lag.add_metric([agent.plan.name, name], size)
        yield from (read, outcome, under_way, since, commits, held, lag, healthy)


def progress_text(agent: Agent) -> Callable[[int], str]:
    """Return the function that makes the progress line for a width."""
    seen: deque[tuple[float, int]] = deque()

    def text(width: int) -> str:
        account, now = agent.account, time.monotonic()
        seen.append((now, account.read))
        while len(seen) > 2 and seen[1][0] <= now - _RATE_SECONDS:
            seen.popleft()
        waits = sum(state.under_way for state in agent.states().values()) + agent.held
        return progress_line(agent.plan.name, account, waits, _rate(seen), width)

    return text


def _rate(seen: deque[tuple[float, int]]) -> float | None:
    (then, before), (now, read) = seen[0], seen[-1]
    return (read - before) / (now - then) if now > then else None


def progress_line(name: str, account: IngestAccount, waits: int, rate: float | None, width: int) -> str:
    """Return one line of at most `width` characters, omitting the least important parts first.

    >>> progress_line("web-1", IngestAccount(90_000, 89_000, 1_000), 12, 45_000.0, 80)
    'web-1  90.0 k read  45.0 k/s  89.0 k sent  1,000 dead  12 wait'
    """
    parts = [f"{name}  {short(account.read)} read"]
    if rate is not None:
        parts.append(f"{short(rate)}/s")
    parts.append(f"{short(account.sent)} sent")
    if account.dead_lettered:
        parts.append(f"{short(account.dead_lettered)} dead")
    if account.dropped_count:
        parts.append(f"{short(account.dropped_count)} dropped")
    if waits:
        parts.append(f"{short(waits)} wait")
    line = parts[0][:width]
    for part in parts[1:]:
        if len(line) + 2 + len(part) <= width:
            line += f"  {part}"
    return line
