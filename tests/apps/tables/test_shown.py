"""Answers in a terminal: they fit 80 columns, and bars compare what can be compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamgauge.apps.tables.shown import notes
from streamgauge.operators.serving.answers import Answer

from ..command import Ran

QUESTIONS = [
    ("top-k", "-k", "5"),
    ("top-k", "-k", "2", "--by", "lang", "--every", "1h"),
    ("distinct", "--by", "lang"),
    ("distinct", "--every", "30m"),
    ("quantiles", "-q", "0.5", "-q", "0.99"),
    ("cdf", "-x", "100", "-x", "350.5"),
    ("frequency", "--item", "all", "--item", "t1"),
    ("sample",),
    ("rows", "--every", "span"),
]


@pytest.mark.parametrize("width", [80, 110])
@pytest.mark.parametrize("question", QUESTIONS, ids=" ".join)
def test_every_question_fits_the_terminal(ran: Ran, tables: Path, monkeypatch, question, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    text = ran("query", tables, *question)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text and "windows, 2026-06-01 12:00 – 14:00 UTC, final" in text


def test_bars_are_as_long_as_their_numbers(ran: Ran, tables: Path) -> None:
    lines = [line for line in ran("query", tables, "top-k", "-k", "2").splitlines() if "█" in line]
    assert [line.count("█") for line in lines] == [30, 3]  # 2,400 and 240
    assert lines[0].split()[:5] == ["1", "all", "2,400", "2,400", "2,400"]


def test_what_must_be_known_besides_the_numbers_is_said() -> None:
    import polars as pl

    gap = {"from": None, "to": "2026-01-01T00:00:00+00:00", "why": "they were dropped"}
    stale = {"since": "2026-01-02T00:00:00+00:00", "why": "no broker"}
    hole = {**gap, "from": "2025-12-31T00:00:00+00:00"}
    told = list(notes(Answer("posts", "rows", pl.DataFrame(), stale=stale, missing=(gap, hole))))
    assert (
        "no broker" in told[0] and "windows before 2026-01-01" in told[1] and "if there were any" in told[1]
    )
    assert "windows from 2025-12-31T00:00:00+00:00 to 2026-01-01" in told[2]


def test_no_rows_are_said_to_be_none(ran: Ran, tables: Path) -> None:
    assert "no window has any rows" in ran("query", tables, "top-k", "--key", "lang=xx")
    assert "there are windows from 2026-06-01 12:00" in ran("query", tables, "--from", "2027-01-01", code=1)
