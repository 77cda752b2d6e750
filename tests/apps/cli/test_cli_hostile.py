"""Names that somebody else wrote, as commands print them: each is on its line, and a terminal obeys none."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from streamgauge.operators.definition.aggregates import count, top_k
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.rules.alert import Alert
from streamgauge.operators.rules.outlets.to_output import AlertsToConsole
from streamgauge.operators.testing import StreamTester
from streamgauge.spark_udafs.streaming.sinks import AnswersToConsole, Batch

from ..command import Ran

NAMES = ("\x1b[2J", "\x1b]0;owned\x07", "a\n2026 forged", "\u202etxt", "[red]x[/]", "", "  ")
COLUMN = "[bold]\x1b[31mlang"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table whose keys, items and columns are named so."""
    types = {"at": pl.Datetime("us", "UTC"), COLUMN: pl.String}
    rows = Stream.from_schema(types, time="at").group_by(COLUMN).tumbling("1m")
    tester = StreamTester(rows.agg(**{"n\x1b[1m": count(), "tags": top_k(COLUMN)}))
    tester.feed([{"at": datetime(2026, 1, 1, tzinfo=UTC), COLUMN: name} for name in NAMES])
    path = tmp_path_factory.mktemp("hostile") / "names.parquet"
    tester.finish().tables().write(path)
    return path


def is_obeyed(text: str) -> list[str]:
    return [c for c in text if c != "\n" and (unicodedata.category(c) == "Cc" or c == "\u202e")]


def test_no_command_prints_a_name_raw(ran: Ran, hostile: Path) -> None:
    tops = ["query", hostile, "top-k", "--column", "tags"]
    for command in (["query", hostile], ["query", hostile, "--json"], tops, ["query", hostile, "describe"]):
        said = ran(*command)
        assert is_obeyed(said) == [], command
        assert not [line for line in said.splitlines() if line.startswith("2026 forged")]
        assert command is tops or "[bold]\\" in said
    shown = ran(*tops)
    assert "[red]x[/]" in shown and "''" in shown and "'  '" in shown and "a\\n2026 forged" in shown
    wrong = ran("query", hostile, "distinct", "--column", "\x1b[2J", code=1)
    assert is_obeyed(wrong) == [] and len(wrong.splitlines()) == 1


def test_neither_alerts_nor_a_console_sink_do(capsys: pytest.CaptureFixture[str], hostile: Path) -> None:
    import pyarrow.parquet as pq

    for name in NAMES:
        AlertsToConsole().write(Alert(name, "k", "fired", (name,), 0, 0, 1.0, 1.0, 1.0, 1.0, name))
        AlertsToConsole(json=True).write(Alert(name, "k", "fired", (name,), 0, 0, 1.0, 1.0, 1.0, 1.0, name))
    said = capsys.readouterr().out
    assert is_obeyed(said) == [] and len(said.splitlines()) == 2 * len(NAMES)
    assert "  fired" not in said and "'' fired" in said
    AnswersToConsole()(pq.read_table(hostile), Batch(query="q", number=0))
    said = capsys.readouterr().out
    assert is_obeyed(said) == [] and "a\\n2026 forged" in said
