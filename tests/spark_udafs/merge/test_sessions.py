"""Sessions merged in buckets, without a Spark session: against a plain search, in any cuts and any order."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import Row

from streamgauge.operators.definition import aggregates as ask
from streamgauge.operators.definition.definition_diff import DefinitionChanged
from streamgauge.operators.table.schema import END, START, from_ipc, table_schema, to_ipc
from streamgauge.operators.windows.session import SessionTable
from streamgauge.spark_udafs.frames.windows import Sessions
from streamgauge.spark_udafs.merge.sessions import BucketedSessions, SessionMerge

GAP = 10_000_000
SESSIONS = SessionTable(GAP)
SCHEMA = table_schema({"id": pa.int64()}, {"n": ask.count(), "rows": ask.sum("id")}, SESSIONS)


def pieces(ids: list[int], times: list[int]) -> pa.Table:
    """Rows as pieces of sessions, one each."""
    columns = {START: times, END: [time + GAP for time in times], "id": ids, "n": 1, "rows": ids}
    return pl.DataFrame(columns).to_arrow().cast(pa.schema([(f.name, f.type) for f in SCHEMA])).cast(SCHEMA)


def plainly(ids: list[int], times: list[int]) -> set[tuple[int, int, int, int]]:
    """The sessions as Spark has them: id, start, end and rows."""
    collected: list[list[int]] = []
    for own, time in sorted(zip(ids, times)):
        if collected and collected[-1][0] == own and time <= collected[-1][2]:
            collected[-1][2:] = [time + GAP, collected[-1][3] + 1]
        else:
            collected.append([own, time, time + GAP, 1])
    return {(a, b, c, d) for a, b, c, d in collected}


def plain(table: pa.Table) -> list[tuple[int, int, int, int]]:
    starts, ends = (table.column(name).cast(pa.int64()).to_pylist() for name in (START, END))
    return list(zip(table.column("id").to_pylist(), starts, ends, table.column("n").to_pylist()))


def rows_of(seed: int, rows: int = 600) -> tuple[list[int], list[int]]:
    random = np.random.default_rng(seed)
    # Whole seconds, so that many sessions just touch.
    return random.integers(0, 5, rows).tolist(), (random.integers(0, 1_500, rows) * 1_000_000).tolist()


class Handle:
    """One bucket's state and timers, as Spark keeps them."""

    def __init__(self) -> None:
        self.held: Any = None
        self.timers: set[int] = set()

    def getValueState(self, name: str, schema: str) -> Any:
        return SimpleNamespace(get=lambda: self.held, update=self._keep, clear=lambda: self._keep(None))

    def registerTimer(self, at: int) -> None:
        self.timers.add(at)

    def _keep(self, value: Any) -> None:
        self.held = value


@pytest.mark.parametrize("seed", range(3))
def test_sessions_are_those_of_all_rows_however_they_come(seed: int) -> None:
    ids, times = rows_of(seed)
    handle, merging = Handle(), SessionMerge(SCHEMA, "append", GAP)
    merging.init(handle)
    parts = [to_ipc(pieces(ids[at : at + 40], times[at : at + 40])) for at in range(0, len(ids), 40)]
    for at in range(0, len(parts), 3):
        rows = iter([Row(__table=part) for part in parts[at : at + 3]])
        assert not list(merging.handleInputRows((0,), rows, None))
    result = plain(from_ipc(handle.held[0]))
    assert len(result) == len(set(result)) and set(result) == plainly(ids, times)
    assert set(plain(merging.fold(parts, (0,)))) == plainly(ids, times)


def test_each_session_is_given_out_once_when_the_watermark_reaches_its_end() -> None:
    ids, times = rows_of(7)
    wanted = plainly(ids, times)
    handle, merging = Handle(), SessionMerge(SCHEMA, "append", GAP)
    merging.init(handle)
    assert not list(merging.handleInputRows((0,), iter([Row(__table=to_ipc(pieces(ids, times)))]), None))
    given: list[tuple[int, int, int, int]] = []
    while handle.timers:
        timer = min(handle.timers)
        handle.timers.remove(timer)
        clock = SimpleNamespace(getCurrentWatermarkInMs=lambda at=timer: at)
        for row in merging.handleExpiredTimer((0,), clock, None):
            given += plain(from_ipc(row["table"]))
            assert all(end <= timer * 1_000 for _, _, end, _ in given)
    assert len(given) == len(wanted) and set(given) == wanted and handle.held is None
    assert not list(merging.handleExpiredTimer((0,), clock, None))


def test_rows_of_a_part_are_late_together() -> None:
    table = pieces(*rows_of(4))
    for streaming in (True, False):
        collected = []
        for batch in BucketedSessions(SCHEMA, GAP, streaming).batches(table):
            for row in batch.to_pylist():
                part = plain(from_ipc(row["__table"]))
                collected += part
                if streaming:
                    assert {end for _, _, end, _ in part} == {pl.Series([row[END]]).dt.epoch("us")[0]}
        assert sorted(collected) == sorted(plain(table))


def test_state_of_other_sessions_is_refused() -> None:
    longer = table_schema({"id": pa.int64()}, {"n": ask.count(), "rows": ask.sum("id")},
                          Sessions("at", 2 * GAP).of_table())  # fmt: skip
    merging = SessionMerge(longer, "append", 2 * GAP)
    with pytest.raises(DefinitionChanged, match=r"the window changed from .*10s.* to .*20s"):
        merging.fold([to_ipc(pieces([1], [0]))], (0,))
