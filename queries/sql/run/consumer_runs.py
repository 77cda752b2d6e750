"""How the queries of a script run: here as consumers that read topics directly."""

from __future__ import annotations

import queue
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from ....operators.consumer import runner
from ....operators.consumer.options import RunOptions
from ....operators.consumer.shared_run import options_of
from ....operators.sketching.account import Account
from ....operators.table.sketch_table import SketchTable
from ..plan.logical_plan import LogicalPlan
from .row_reader import topics_of

Start = Literal["earliest", "latest"]


@dataclass(frozen=True)
class KeptQuery:
    """A query that writes: its sinks, and the topic for its rows."""

    name: str
    plan: LogicalPlan
    sinks: tuple[Any, ...]
    topic: str


class RunningQueries(Protocol):
    """Running queries."""

    @property
    def names(self) -> tuple[str, ...]:
        """The queries' names."""

    @property
    def running(self) -> bool:
        """Whether they run."""

    def stop(self) -> None:
        """Request their end."""

    def wait(self) -> None:
        """Wait for their end. Raises the error that ended one of them."""


class QueryRuns(Protocol):
    """Runs queries: `ConsumerRuns`, or Spark (`apps.sql.spark_runs`)."""

    def run(self, queries: Sequence[KeptQuery], start: Start) -> None:
        """Run queries to the end of the data that exists now."""

    def start(self, queries: Sequence[KeptQuery], start: Start) -> list[RunningQueries]:
        """Start continuous queries; queries that end together are one of the results."""

    def table(self, plan: LogicalPlan) -> tuple[SketchTable, Account, str]:
        """All windows of the messages now in a query's topics, and the outcome of the messages.

        The text is the reason why one of them was refused, if known.
        """

    def tables(self, plan: LogicalPlan, start: Start) -> Generator[SketchTable]:
        """The windows of a query as they close or, with EMIT CHANGES, change; for ever."""


@dataclass
class ConsumerRuns:
    """Runs queries as consumers; with a `group` they resume where that group ended."""

    group: str = ""

    def run(self, queries: Sequence[KeptQuery], start: Start) -> None:
        """See `QueryRuns`."""
        for _, shared in _shares(queries):
            runner.run_together(*self._given(shared, "latest", start), progress=False)

    def start(self, queries: Sequence[KeptQuery], start: Start) -> list[RunningQueries]:
        """See `QueryRuns`. Queries that write and read the same topics share a consumer."""
        return [
            _Shared(names, runner.start_together(*self._given(shared, None, start)))
            for names, shared in _shares(queries)
        ]

    def table(self, plan: LogicalPlan) -> tuple[SketchTable, Account, str]:
        """See `QueryRuns`."""
        summary = runner.run(plan.stream, RunOptions(until="latest", dead_letters=None), progress=False)
        return summary.table, summary.account, summary.example

    def tables(self, plan: LogicalPlan, start: Start) -> Generator[SketchTable]:
        """See `QueryRuns`."""
        tables: queue.SimpleQueue[SketchTable] = queue.SimpleQueue()
        options = RunOptions(
            on_window=tables.put,
            dead_letters=None,
            emit="both" if plan.push == "changes" else "close",
            start=start,
        )
        return drained(tables, runner.start(plan.stream, options))

    def _given(self, queries: Sequence[KeptQuery], until: Any, start: Start) -> tuple[Any, Any]:
        topics = topics_of(queries[0].plan)
        group = f"{self.group}.{'-'.join(topics)}" if self.group else None
        streams = {one.name: one.plan.stream for one in queries}
        options = RunOptions(until=until, group_id=group, start=start)
        return streams, options_of(streams, options, None, {one.name: one.sinks for one in queries})


def drained(tables: queue.SimpleQueue[SketchTable], run: Any) -> Generator[SketchTable]:
    """The tables that a run puts into a queue, until it ends; the run ends with the iteration."""
    try:
        while run.running or not tables.empty():
            try:
                yield tables.get(timeout=0.2)
            except queue.Empty:
                continue
        run.wait()
    finally:
        run.stop()


@dataclass(frozen=True)
class _Shared:
    """See `RunningQueries`."""

    names: tuple[str, ...]
    run: Any

    @property
    def running(self) -> bool:
        return bool(self.run.running)

    def stop(self) -> None:
        self.run.stop()

    def wait(self) -> None:
        self.run.wait()


def _shares(queries: Sequence[KeptQuery]) -> list[tuple[tuple[str, ...], list[KeptQuery]]]:
    """Queries by the topics that they read; each share has its names."""
    shares: dict[tuple[Any, ...], list[KeptQuery]] = {}
    for one in queries:
        shares.setdefault((one.plan.stream.reading.joined is None, *topics_of(one.plan)), []).append(one)
    return [(tuple(one.name for one in shared), shared) for shared in shares.values()]
