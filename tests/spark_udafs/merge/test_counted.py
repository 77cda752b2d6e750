"""Windows by count from a worker's rows to those that are full, without Spark in between."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import polars as pl
import pyarrow as pa

from streamgauge import Stream, count, distinct, query
from streamgauge.operators.sketching.partition_state import PartitionState
from streamgauge.operators.table.schema import from_ipc, schema_of
from streamgauge.operators.windows.count import ByCount
from streamgauge.spark_udafs.merge.counted import CountedPartials, CountMerge

ROWS = Stream.from_schema(
    {"at": pl.Int64, "key": pl.String, "tags": pl.List(pl.String)}, time=pl.from_epoch("at")
)
STREAM = ROWS.explode("tags").group_by("key").count_window(3).agg(n=count(), tags=distinct("tags")).complete()
DAY = 1_767_225_600


class State:
    """The state of one key."""

    value: tuple[Any, ...] | None = None

    def get(self) -> tuple[Any, ...] | None:
        return self.value

    def update(self, value: tuple[Any, ...]) -> None:
        self.value = value

    def clear(self) -> None:
        self.value = None


def test_windows_go_on_from_batch_to_batch_and_a_message_may_be_in_two() -> None:
    window = STREAM.window
    assert isinstance(window, ByCount)
    schema = schema_of(STREAM)
    partials = CountedPartials(schema, window)
    worker = PartitionState(STREAM, "rows", 0, 0, sketches=partials.sketches)
    states: dict[Any, State] = {}
    full: list[pa.Table] = []
    offset = 0
    for batch in ([("a", 2), ("b", 1)], [("a", 2), ("a", 1)], [], [("b", 3), ("a", 2)]):
        for key, tags in batch:
            frame = pl.DataFrame(
                {"at": [DAY + offset], "key": [key], "tags": [[f"{offset}.{n}" for n in range(tags)]]},
                schema=ROWS.source.schema,
            )
            worker.add(frame, None, pl.Series([offset]).to_numpy(), offset + 1, lambda *_: None)
            offset += 1
        for parts in partials.batches_of(worker.delta()):
            for row in parts.to_pylist():
                key = (row["__bucket"], row["__input"])
                merging = CountMerge(schema, window)
                merging._table = states.setdefault(key, State())  # type: ignore[assignment]
                emitted = merging.handleInputRows(key, iter([row]), SimpleNamespace())
                full += [from_ipc(one["table"]) for one in emitted]
    answers = query(pa.concat_tables(full)).sort("window_id")
    expected = [("a", "rows[0]:0", 3, 0, 2), ("b", "rows[0]:1", 3, 1, 4), ("a", "rows[0]:2.1", 3, 2, 5)]
    edges = [
        (answers[name].dt.epoch("us") - DAY * 1_000_000).to_list() for name in ("window_start", "window_end")
    ]
    assert list(zip(answers["key"], answers["window_id"], answers["n"], *edges)) == [
        (*shown, first * 1_000_000, last * 1_000_000 + 1) for *shown, first, last in expected
    ]
    assert [round(one["estimate"]) for one in answers["tags"]] == [3, 3, 3]
    assert [from_ipc(state.value[0]).num_rows for state in states.values() if state.value] == [1, 1]
