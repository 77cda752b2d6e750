"""Answers in a terminal: they fit 80 columns, and bars compare what can be compared."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from streamgauge import Stream, StreamTester
from streamgauge.apps.tables.view import notes
from streamgauge.operators.definition import aggregates as ask
from streamgauge.queries.answers.answers import Answer

from ..command import Ran

START = 1_767_225_600
"""2026-01-01 00:00 UTC, when a tester's clock begins."""
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


@pytest.mark.slow
@pytest.mark.parametrize("width", [80, 110])
@pytest.mark.parametrize("question", QUESTIONS, ids=" ".join)
def test_every_question_fits_the_terminal(ran: Ran, tables: Path, monkeypatch, question, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    text = ran("query", tables, *question)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text and "windows, 2026-06-01 12:00 – 14:00 UTC, final" in text


def test_nine_aggregates_are_read_at_80_columns(ran: Ran, tmp_path: Path, monkeypatch) -> None:
    rows = Stream.from_schema(
        {"at": pl.Int64, "symbol": pl.String, "user": pl.String, "price": pl.Float64},
        time=pl.from_epoch("at"),
    )
    stream = (
        rows.group_by("symbol")
        .tumbling("1m")
        .agg(
            trades=ask.count(),
            users=ask.distinct("user"),
            prices=ask.quantiles("price"),
            top_users=ask.top_k("user", k=5),
            some=ask.sample("user", k=5),
            turnover=ask.sum("price"),
            mean_price=ask.mean("price"),
            last_price=ask.last("price"),
            spread=ask.variance("price"),
        )
    )
    tester = StreamTester(stream)
    tester.feed(
        [
            {"at": START + n % 60, "symbol": "AB"[n % 2], "user": f"user{n % 7}", "price": float(n)}
            for n in range(200)
        ]
    )
    tester.finish().tables().write(tmp_path / "nine.parquet")
    monkeypatch.setenv("COLUMNS", "80")
    text = ran("query", tmp_path / "nine.parquet")
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80 and "…" not in text
    # A block a group: its window, then a line a column.
    assert lines[0] == "2026-01-01 00:00 – 00:01"
    result = {words[0]: words[1:] for line in lines if len(words := line.split()) > 1}
    assert result["symbol"] == ["B"] and result["trades"] == ["100"] and result["last_price"] == ["179"]
    assert result["turnover"] == ["10,000"] and result["prices"][0] == "p50" and "user" in result["some"][0]


def test_bars_are_as_long_as_their_numbers(ran: Ran, tables: Path) -> None:
    lines = [line for line in ran("query", tables, "top-k", "-k", "2").splitlines() if "█" in line]
    assert [line.count("█") for line in lines] == [30, 3]  # 2,400 and 240
    assert lines[0].split()[:5] == ["1", "all", "2,400", "2,400", "2,400"]


def test_what_must_be_known_besides_the_numbers_is_said() -> None:
    gap = {"from": None, "to": "2026-01-01T00:00:00+00:00", "why": "they were dropped"}
    stale = {"since": "2026-01-02T00:00:00+00:00", "why": "no broker"}
    hole = {**gap, "from": "2025-12-31T00:00:00+00:00"}
    reported = list(notes(Answer("posts", "rows", pl.DataFrame(), stale=stale, missing=(gap, hole))))
    assert (
        "no broker" in reported[0]
        and "windows before 2026-01-01" in reported[1]
        and "if there were any" in reported[1]
    )
    assert "windows from 2025-12-31T00:00:00+00:00 to 2026-01-01" in reported[2]


def test_no_rows_are_said_to_be_none(ran: Ran, tables: Path) -> None:
    assert "no window has any rows" in ran("query", tables, "top-k", "--key", "lang=xx")
    assert "there are windows from 2026-06-01 12:00" in ran("query", tables, "--from", "2027-01-01", code=1)
