"""Closed windows say the same alive and as bytes, and nothing that follows changes what was handed over."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from streamgauge.operators.consumer.merge.merger import Merger
from streamgauge.operators.formats.encode import json_bytes, key_bytes
from streamgauge.operators.sinks.answers_to_kafka import AnswersToKafka
from streamgauge.operators.sinks.sink import ClosedWindow, Origin
from streamgauge.operators.table import window_groups
from streamgauge.operators.table.query import query
from streamgauge.operators.table.schema import with_sketches
from streamgauge.operators.table.window_groups import WindowGroups, as_few

from ....cases import each
from .deltas import STREAM, paused, posts
from .recomputed import deltas, merger_of, partitions, streams

STREAMS = streams()


def emitted(merger: Merger, log: list[Any]) -> list[tuple[WindowGroups, pl.DataFrame, bool]]:
    """What is due after each delta, and its answers at that time."""
    collected = []
    for offset, delta in enumerate(log):
        merger.offer(delta, offset)
        while (groups := merger.due()) is not None:
            collected.append((groups, groups.answers(), merger.final))
            merger.mark_emitted()
    return collected


@pytest.mark.slow
@each("cut", [7, 10_000])
@each("kind", STREAMS)
def test_windows_of_every_kind_answer_alive_as_their_bytes_do(kind: str, cut: int) -> None:
    stream = STREAMS[kind]
    log = deltas(stream, partitions(cut, 2, 150, stream), cut, cut)
    tables = (merger := merger_of(stream, 2)).close()
    for offset, delta in enumerate(log):
        merger.offer(delta, offset)
        tables += merger.close()
    windows = emitted(merger_of(stream, 2), log)
    # The others were written as they closed, these after all that came for later windows.
    assert len(windows) == len(tables) > (cut == 7) * 3
    for (groups, answers, final), table in zip(windows, tables):
        assert groups.table.equals(table, check_metadata=True) and groups.final is final
        assert answers.equals(query(table)) and answers.schema == query(table).schema
        assert messages(stream, groups, final) == row_by_row(stream, groups, final)
    few = as_few(groups.alone() for groups, _, _ in windows)
    assert pl.concat([one.answers() for one in few]).equals(pl.concat([query(table) for table in tables]))


def test_a_window_that_comes_again_leaves_alone_what_was_handed_over_before() -> None:
    log = paused(range(18), 60, 61, range(18, 40), 120, range(130, 140), range(200, 230))
    windows = emitted(Merger(STREAM, posts(1), confirms=True), log)
    assert [final for _, _, final in windows].count(False) >= 2
    starts = [answers["window_start"][0] for _, answers, _ in windows]
    assert len(set(starts)) < len(starts)  # some came again
    for groups, answers, _ in windows:
        assert groups.answers().equals(answers) and query(groups.table).equals(answers)


def test_hopping_windows_answer_without_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = STREAMS["hopping"]
    merger, windows = merger_of(stream, 2), list[WindowGroups]()
    for offset, delta in enumerate(deltas(stream, partitions(7, 2, 150, stream), 7, 7)):
        merger.offer(delta, offset)
        while (groups := merger.due()) is not None:
            windows.append(groups)
            merger.mark_emitted()
    written = list[int]()
    monkeypatch.setattr(window_groups, "with_sketches", lambda *of: written.append(1) or with_sketches(*of))
    assert sum(len(groups.answers()) for groups in windows if groups.final) > 100 and not written
    assert all(groups.table.num_rows == len(groups) for groups in windows) and written


def messages(stream: Any, groups: WindowGroups, final: bool) -> list[Any]:
    window = ClosedWindow(groups, 0, final, Origin.of(stream, "group", named=True))
    return [(one.key, one.value) for one in AnswersToKafka("answers").messages(window)]


def row_by_row(stream: Any, groups: WindowGroups, final: bool) -> list[Any]:
    rows = query(groups.table).iter_rows(named=True)
    return [(key_bytes([row[name] for name in stream.keys]), json_bytes(row)) for row in rows]
