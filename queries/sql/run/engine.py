"""The interface between a session and the engine that runs its statements."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol

from ...views.view import TableView
from ..plan.catalog import Relation
from ..plan.logical_plan import LogicalPlan
from ..plan.selection import ResultSet


class Engine(Protocol):
    """Runs statements: on brokers, `brokers.Brokers`, or in memory, `memory.Memory`."""

    def topics(self) -> list[tuple[str, int]]:
        """The topics, each with its number of partitions."""

    def messages(self, topic: str, beginning: bool, limit: int | None) -> Iterator[Sequence[Any]]:
        """A topic's messages: partition, offset, time, key, value."""

    def rows(self, plan: LogicalPlan) -> Iterator[ResultSet]:
        """A query's rows, as they arrive."""

    def keep(self, name: str, plan: LogicalPlan, sinks: Sequence[Any], topic: str) -> None:
        """Register a query that writes its rows to a topic: once to the end, or continuously."""

    def insert(self, relation: Relation, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write rows to a relation's topic."""

    def expect(
        self, relation: Relation, columns: Sequence[str], rows: Sequence[Sequence[Any]], at: Any
    ) -> None:
        """Raise `SqlError` unless the relation's next rows are these."""

    def view(self, group: str) -> TableView:
        """The current table of a running group."""

    def queries(self) -> list[tuple[str, str]]:
        """The queries that write, each with its topic."""

    def start(self) -> None:
        """Start the registered queries that aren't started yet: those of the same topics together."""

    def terminate(self, names: Collection[str]) -> None:
        """End queries that write. Raises `ValueError` for one that can't be ended without others."""

    def configure(self, name: str, value: str) -> None:
        """Change a setting. Raises `ValueError` for an unknown one."""
