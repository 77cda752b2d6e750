"""A table followed live is what the merging worker makes of the same log, its open windows included."""

from __future__ import annotations

import pyarrow as pa
import pytest

from streamgauge.operators.consumer.log.snapshots import Snapshot
from streamgauge.operators.definition.aggregates import count, distinct
from streamgauge.operators.definition.described_stream import described_stream
from streamgauge.operators.kafka.log_faults import DeltaError
from streamgauge.operators.watermarks.position import inputs_of
from streamgauge.queries.views.live import LiveTable
from streamgauge.queries.views.view import NotReady

from ..logs import MINUTE, START, STREAM, Fed, deltas, expected, messages, rows

ROWS = deltas(rows(seed=1, minutes=8))


def sorted_rows(tables: list[pa.Table]) -> list[object]:
    whole = pa.concat_tables(tables).to_pylist()
    return sorted(whole, key=lambda row: (row["window_start"], repr(row["lang"])))


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("largest", [900_000, 2_000])
def test_it_has_the_windows_of_the_merging_worker(partitions: int, largest: int) -> None:
    fed = Fed(partitions).feed(messages(ROWS, partitions, largest=largest))
    closed, opened = expected(ROWS)
    windows = fed.table.view().windows
    assert sorted_rows([w.table for w in windows if not w.open]) == sorted_rows(closed)
    assert sorted_rows([w.table for w in windows if w.open]) == sorted_rows(opened)
    final = fed.table.view().final_us
    assert max(w.end for w in windows if not w.open) <= final < min(w.end for w in windows if w.open)


@pytest.mark.parametrize("kind", ["hopping", "sliding", "session", "cumulate"])
def test_windows_of_every_kind(kind: str) -> None:
    source = STREAM.__class__.from_schema(STREAM.source.schema, time="at").group_by("lang")
    windows = {
        "hopping": source.hopping("2m", every="1m", delay="5s"),
        "sliding": source.sliding("2m", step="30s", delay="5s"),
        "session": source.session("2s", delay="5s"),
        "cumulate": source.cumulate("2m", every="30s", delay="5s"),
    }
    stream = windows[kind].agg(posts=count(), users=distinct("user"))
    result = deltas(rows(seed=3, minutes=6), stream=stream)
    view = Fed(stream=stream).feed(messages(result)).table.view()
    closed, opened = expected(result, stream=stream)
    wanted = sorted_rows([*closed, *opened])
    got = sorted_rows([window.table for window in view.windows])
    assert sorted(map(repr, got)) == sorted(map(repr, wanted))


def test_ranges_that_came_before_count_once() -> None:
    once, twice = messages(ROWS), [m for delta in ROWS for m in 2 * messages([delta])]
    views = [Fed().feed(fed).table.view() for fed in (once, twice)]
    one, other = ([w.table.to_pylist() for w in view.windows] for view in views)
    assert one == other


def test_a_view_stays_what_it_was_and_watchers_are_notified() -> None:
    sent = messages(ROWS)
    fed = Fed().feed(sent[:4])
    collected: list[int] = []
    end = fed.table.watch(lambda: collected.append(1))
    before = fed.table.view()
    tables = [window.table for window in before.windows]
    fed.feed(sent[4:6])
    assert len(collected) == 2 and [window.table for window in before.windows] == tables
    assert fed.table.view().version != before.version
    end()
    fed.feed(sent[6:8])
    assert len(collected) == 2


def test_it_goes_on_from_a_place_in_the_log_and_says_what_is_gone() -> None:
    sent = messages(ROWS)
    fed = Fed().feed(sent[: len(sent) // 2])
    offset, state = fed.table.known().places[0]
    assert 0 < offset < len(sent) // 2
    whole = Fed().feed(sent).table.view()
    kept = {window.start for window in fed.table.known().windows}
    late = LiveTable("posts")
    late.begin(described_stream(STREAM.definition()), {0: (offset, state)}, inputs_of({"posts": 2}), {})
    for at, message in enumerate(sent):
        if at >= offset:
            late.merge_message(0, at, message.value, list(message.headers))
    view = late.view()
    wanted = [w.table.to_pylist() for w in whole.windows if w.start not in kept]
    assert kept and [w.table.to_pylist() for w in view.windows] == wanted
    (gap,) = view.gaps
    assert gap.until == max(kept) + MINUTE and late.wanting()[0][1] == gap.until
    # What is recalled from elsewhere is missing no more.
    for window in fed.table.known().windows:
        late.backfill(0, window.table)
    assert [w.table.to_pylist() for w in late.view().windows] == [w.table.to_pylist() for w in whole.windows]
    assert [gap.until for gap in late.view().gaps] == [min(kept)]


def test_windows_older_than_what_is_kept_are_dropped_and_said() -> None:
    view = Fed(keep_us=2 * MINUTE).feed(messages(ROWS)).table.view()
    closed = [window for window in view.windows if not window.open]
    assert len(closed) == 2
    (gap,) = view.gaps
    assert gap.until == closed[0].start and "older than --keep" in gap.why
    view = Fed(most_bytes=1).feed(messages(ROWS)).table.view()
    assert sum(not window.open for window in view.windows) == 1 and "to free memory" in view.gaps[0].why


def test_a_log_of_something_else_is_refused() -> None:
    fed = Fed()
    with pytest.raises(DeltaError, match="not a delta"):
        fed.table.merge_message(0, 0, b"junk", [])
    other = (
        STREAM.__class__.from_schema(STREAM.source.schema, time="at").tumbling("2m").agg(**STREAM.aggregates)
    )
    (message,) = messages(ROWS[:1])
    headers = [(k, v if k != "fingerprint" else other.fingerprint().encode()) for k, v in message.headers]
    with pytest.raises(DeltaError, match="comes from the definition"):
        fed.table.merge_message(0, 0, message.value, headers)
    snapshot = Snapshot(STREAM.fingerprint(), "", 0, "{}", STREAM.definition())
    for part in snapshot.outgoing("table", 0):
        fed.table.merge_message(0, 1, part.value, list(part.headers))  # a merger's own, and nothing of ours


def test_nothing_can_be_asked_before_anything_is_known() -> None:
    table = LiveTable("posts")
    table.waiting("no broker answers")
    with pytest.raises(NotReady, match="no broker answers"):
        table.view()
    fed = Fed().feed(messages(ROWS))
    assert fed.table.view().ready and fed.table.view().lag == 0
    fed.table.forget()
    with pytest.raises(NotReady):
        fed.table.view()


def test_times_begin_where_the_rows_do() -> None:
    view = Fed().feed(messages(ROWS)).table.view()
    assert view.windows[0].start == int(START.timestamp()) * 1_000_000
