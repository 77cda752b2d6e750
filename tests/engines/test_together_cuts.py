"""Streams that run together count the same however micro-batches are cut, run again, or lose their reports.

Planned and merged as Spark does, but without Spark.
"""

from __future__ import annotations

import json
import pickle
from collections import defaultdict
from collections.abc import Iterator
from random import Random
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from streamgauge.operators.sketching.account import Account
from streamgauge.spark_udafs.kafka.shared_source import RoundCluster, TogetherReader, bound_together
from streamgauge.spark_udafs.merge.partials import ACCOUNT
from streamgauge.spark_udafs.merge.shared_state import TogetherMerge, TogetherPartials

from ..cases import seeds
from .test_together import KINDS, account, stream_of, topic, wanted
from .test_windows import counted_in

__all__ = ["topic"]

Key = tuple[int, int, str]
State = dict[Key, Any]


class Planned:
    """A query's log of offsets, the states behind each micro-batch, and the windows that each has closed."""

    def __init__(self, streams: Any, servers: str) -> None:
        self.streams, self.servers = streams, servers
        self.plan = TogetherPartials(streams)
        self.merge = TogetherMerge([part.merging for part in self.plan._parts.values()], False)
        self.reader = self.started()
        self.log = [self.reader.initialOffset()]
        self.states: list[State] = [{}]
        self.closed: dict[int, pa.Table] = {}
        self.partials = self.plan.schema.empty_table()

    def started(self) -> TogetherReader:
        """A reader as a run has at its start."""
        source = bound_together(self.streams, {"bootstrap.servers": self.servers}, False)
        given = {"startingOffsets": "earliest", "closeAtEnd": "true", "idleTimeout": "3600000"}
        reader = source(given).streamReader(None)
        assert isinstance(reader, TogetherReader)
        reader.prepareForTriggerAvailableNow()
        return reader

    def restart(self) -> None:
        """Stop, and run the last micro-batch again with another reader, as after a sink has failed."""
        self.reader.stop()
        self.reader = self.started()
        self.run(len(self.log) - 1)

    def account(self, name: str) -> Account:
        """A stream's account, as the last micro-batch gives it."""
        own = self.partials.filter(pc.field("__stream") == list(self.streams).index(name))
        return Account(**{column: pc.sum(own.column(f"__{column}")).as_py() for column in ACCOUNT})

    def batch(self, limit: int) -> bool:
        """Plan and run the next micro-batch; False if there is nothing to do."""
        end = self.reader.latestOffset(self.log[-1], ReadMaxRows(limit))
        if end == self.log[-1]:
            return False
        self.log.append(json.loads(json.dumps(end)))
        self.states.append({})
        self.run(len(self.log) - 1)
        return True

    def run(self, number: int) -> None:
        """Run a micro-batch, perhaps not for the first time."""
        batches: list[pa.RecordBatch] = []
        for task in self.reader.partitions(self.log[number - 1], self.log[number]):
            worker = pickle.loads(pickle.dumps(self.reader))
            batches += worker.read(pickle.loads(pickle.dumps(task)))
        self.partials = table = pa.Table.from_batches(batches)
        rows = defaultdict[Key, list[dict[str, Any]]](list)
        for row in table.to_pylist():
            if row["__bucket"] is not None:
                rows[row["__stream"], row["__bucket"], row["__input"]].append(row)
        state = dict(self.states[number - 1])
        given = [row for key in sorted(rows) for row in self._merged(state, key, rows[key])]
        self.states[number] = state
        schema = pa.schema({"stream": pa.int32(), "table": pa.binary(), "final": pa.bool_()})
        self.closed[number] = pa.Table.from_pylist(given, schema)

    def _merged(self, state: State, key: Key, rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        held = SimpleNamespace(
            get=lambda: state.get(key),
            update=lambda value: state.__setitem__(key, value),
            clear=lambda: state.pop(key, None),
        )
        self.merge.init(SimpleNamespace(getValueState=lambda *_: held))  # type: ignore[arg-type]
        return (row.asDict() for row in list(self.merge.handleInputRows(key, iter(rows), None)))


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.parametrize("seed", seeds(1, 60))
def test_cuts_restarts_and_lost_reports_change_nothing(
    seed: int, kafka: Any, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(seed)
    reports = RoundCluster.together_reports
    # Reports are lost until all is read, and a little longer.
    rounds, lost_of_all = iter(range(14)), random.choice([0.0, 0.3])

    def some(self: Any, group: str, places: Any) -> Any:
        def ask() -> Any:
            there, lost = reports(self, group, places), next(rounds, None) is not None
            return {
                place: report for place, report in there.items() if not lost or random.random() >= lost_of_all
            }

        return self._once(("some", group, *places), ask)

    monkeypatch.setattr(RoundCluster, "together_reports", some)
    streams = {kind: stream_of(kind, topic, kafka.bootstrap_servers) for kind in KINDS}
    query = Planned(streams, kafka.bootstrap_servers)
    while query.batch(random.choice([300, 400, 900, 2_000, random.randrange(100, 3_000)])):
        if random.random() < 0.3:
            query.restart()
    for kind in KINDS:
        closed = [query.plan.table_of(kind, table, final=True) for table in query.closed.values()]
        assert counted_in(pa.concat_tables(closed), kind) == wanted(kind), (kind, seed)
        assert query.account(kind) == account(kind), (kind, seed)
