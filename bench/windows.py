"""Closing windows: from a delta to alerts, messages and answers, without a broker.

The merger's own work, in the processor's time of one thread: deltas that were made before are merged, their
windows close, a rule looks at every group, `AnswersToKafka` makes a message of each or a callback asks
for all answers, and the closed windows are kept for `Summary.table`.

The other side is how it was done before closed windows carried their groups. Each window is merged alone, and
written to bytes; the rule, the messages and the callback read these bytes, each for itself; the rule looks at
rows one by one, and so are messages written. It is called here and nowhere else. Both sides take turns; each
figure is the median of three runs. Of small windows the older side gets a tenth as many, since each costs as
much as the next; what is printed is the time a window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from streamgauge import Stream, count, distinct, query
from streamgauge.operators.consumer.merge import paned_windows
from streamgauge.operators.consumer.merge.closed_windows import ClosedWindows
from streamgauge.operators.consumer.merge.merger import Merger
from streamgauge.operators.consumer.merge.paned_windows import PanedWindows
from streamgauge.operators.formats.encode import json_bytes, key_bytes
from streamgauge.operators.kafka.outgoing_message import ANY_PARTITION, Outgoing
from streamgauge.operators.rules.alerting import Alerting
from streamgauge.operators.rules.kinds.threshold import Threshold
from streamgauge.operators.rules.outlets.to_topic import AlertsToKafka
from streamgauge.operators.rules.row import Row
from streamgauge.operators.rules.rule import Measured
from streamgauge.operators.rules.value_with_bounds import Figure
from streamgauge.operators.sinks.answers_to_kafka import AnswersToKafka
from streamgauge.operators.sinks.sink import ClosedWindow, Origin, takes_several
from streamgauge.operators.sketching.delta import Delta
from streamgauge.operators.sketching.partition_state import PartitionState
from streamgauge.operators.table.schema import schema_of
from streamgauge.operators.table.sketch_table import SketchTable
from streamgauge.operators.table.window_groups import WindowGroups
from streamgauge.operators.watermarks.position import Input

from .measure import line, medians

START = 1_767_225_600
"""The year 2026."""
RUNS = 3
GROUPS, SECONDS = 10_000, 8
MINUTES, SHARE = 20_000, 10


@dataclass(frozen=True)
class RowByRow(Threshold):
    """A threshold that sees every row, as a rule of somebody's own does."""

    def measure(self, memory: dict[str, Any], row: Row, figure: Figure) -> Measured:
        return Measured(figure, f"{self.value} is {figure}")


class MessagesRowByRow(AnswersToKafka):
    """Messages of a table's bytes, a row at a time."""

    def messages(self, window: ClosedWindow) -> Iterator[Outgoing]:
        headers = [("fingerprint", window.origin.fingerprint.encode()), ("final", b"%d" % window.final)]
        for row in query(read_again(window.groups.table)).iter_rows(named=True):
            key = key_bytes([row[name] for name in window.origin.keys])
            yield Outgoing(self.to, ANY_PARTITION, json_bytes(row), headers, key)


def read_again(table: pa.Table) -> pa.Table:
    """The same table, with nothing known but its bytes."""
    return pa.Table.from_batches(table.to_batches(), schema=table.schema)


@contextmanager
def each_alone() -> Iterator[None]:
    """Windows are merged one by one, and are bytes at once."""
    together, whole = paned_windows.groups_of_parts, PanedWindows._without_panes

    def alone(schema: pa.Schema, parts: Any) -> dict[int, Callable[[], WindowGroups]]:
        return {
            start: lambda part=part: WindowGroups.of_table(part.table())  # type: ignore[misc]
            for start, part in parts.items()
        }

    paned_windows.groups_of_parts = alone
    PanedWindows._without_panes = lambda *_: []  # type: ignore[method-assign]
    try:
        yield
    finally:
        paned_windows.groups_of_parts, PanedWindows._without_panes = together, whole  # type: ignore[method-assign]


@dataclass
class Listeners:
    """Who hears of closed windows."""

    rule: bool = False
    messages: bool = False
    callback: bool = False


def deltas_of(stream: Stream, frames: list[pl.DataFrame]) -> list[Delta]:
    """A delta a frame."""
    state, deltas = PartitionState(stream, "input", 0, 0, clock=lambda: START + 1e9), []
    for frame in frames:
        first, end = state.next_offset, state.next_offset + frame.height
        state.add(frame, None, np.arange(first, end), end, lambda numbers, reason: None)
        deltas.append(state.delta())
    return deltas


def closed(stream: Stream, deltas: list[Delta], listeners: Listeners, alive: bool) -> tuple[int, list[Any]]:
    """How many groups closed, and the messages that were made of them."""
    origin = Origin.of(stream, "bench", named=True)
    kind = Threshold if alive else RowByRow
    alerting = Alerting([kind("many", kind="many", value="posts", at_least=3)], to=[AlertsToKafka("alerts")])
    folding = alerting.for_partition(origin, 0)
    sink = (AnswersToKafka if alive else MessagesRowByRow)("answers")
    merger, kept = Merger(stream, [Input("input", 0)]), ClosedWindows(schema_of(stream), 1_000)
    rows, messages = 0, list[Any]()
    for offset, delta in enumerate(deltas):
        merger.offer(delta, offset)
        while (groups := merger.due()) is not None:
            rows += len(groups)
            for_sink = groups if alive else WindowGroups.of_table(read_again(groups.table))
            window = ClosedWindow(for_sink, 0, merger.final, origin)
            for one in groups.windows() if listeners.callback else ():
                query(SketchTable.of_groups(one) if alive else read_again(one.table))
            for part in [window] if takes_several(alerting) else _alone(window):
                messages += folding.update(part) if listeners.rule else []
            if listeners.messages:
                messages += sink.messages(window)
            kept.add(0, groups)
            merger.mark_emitted()
    return rows, messages


def _alone(window: ClosedWindow) -> list[ClosedWindow]:
    return [replace(window, groups=one) for one in window.groups.windows()]


def compared(
    claim: str,
    stream: Stream,
    frames: Callable[[int], list[pl.DataFrame]],
    counts: tuple[int, int],
    listeners: Listeners,
    unit: str,
    target: str,
) -> dict[str, Any]:
    """A line of both sides; `counts` are the windows that each gets."""
    mine, theirs = (deltas_of(stream, frames(many)) for many in counts)
    few = deltas_of(stream, frames(3))
    with each_alone():
        before = closed(stream, few, listeners, alive=False)
    assert before[0] and before == closed(stream, few, listeners, alive=True), "both sides say the same"

    def alone() -> None:
        with each_alone():
            closed(stream, theirs, listeners, alive=False)

    spent = medians(lambda: closed(stream, mine, listeners, alive=True), alone, runs=RUNS, warm=False)
    after, before_that = (1e3 * seconds / many for seconds, many in zip(spent, counts))
    return line(
        claim, f"{after:,.3g} ms {unit}", f"{before_that:,.3g} ms {unit}", before_that / after, target
    )


def by_second(windows: int) -> list[pl.DataFrame]:
    """A post or a few of each of 10,000 groups in each second; a delta a second."""
    random = np.random.default_rng(9)
    frames = []
    for second in range(windows + 1):
        groups = np.concatenate([np.arange(GROUPS), random.integers(0, GROUPS, GROUPS // 4)])
        users = random.integers(0, 10**6, len(groups))
        frames.append(pl.DataFrame({"at": np.full(len(groups), START + second), "k": groups, "user": users}))
    return frames


def by_minute(windows: int) -> list[pl.DataFrame]:
    """A message a minute, all in one delta, as a replay brings them; and one that closes the last."""
    at = START + 60 * np.arange(windows + 2)
    return [pl.DataFrame({"at": at, "k": np.zeros(len(at), np.int64), "user": at})]


def main() -> list[dict[str, Any]]:
    rows = Stream.from_schema({"at": pl.Int64, "k": pl.Int64, "user": pl.Int64}, time=pl.from_epoch("at"))
    seconds = rows.group_by("k").tumbling("1s", delay="0s").agg(posts=count(), users=distinct("user"))
    minutes = rows.tumbling("1m", delay="0s").agg(posts=count(), users=distinct("user"))
    few = MINUTES, MINUTES // SHARE
    collected = [
        compared(
            f"{GROUPS:,} groups close each second, a rule and AnswersToKafka",
            seconds,
            by_second,
            (SECONDS, SECONDS // 2),
            Listeners(rule=True, messages=True),
            "a second",
            "≥ 2",
        )
    ]
    for claim, listeners in (
        ("no one listens", Listeners()),
        ("on_window=query", Listeners(callback=True)),
        ("one Threshold", Listeners(rule=True)),
    ):
        collected.append(
            compared(
                f"{MINUTES:,} one-minute windows of a message, {claim}",
                minutes,
                by_minute,
                few,
                listeners,
                "a window",
                "",
            )
        )
    return collected


if __name__ == "__main__":
    for row in main():
        print(row)
