"""`streamgauge sketch`: files requested in a shell."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

import streamgauge as sg

from ..command import Ran


@pytest.fixture
def files(tmp_path: Path) -> Path:
    rows = pl.DataFrame(
        {
            "at": [f"2026-06-01T12:{n % 60:02}:00" for n in range(300)],
            "lang": ["en" if n % 3 else "de" for n in range(300)],
            "user": [n % 50 for n in range(300)],
            "ms": [float(n) for n in range(300)],
        }
    )
    (tmp_path / "rows").mkdir()
    rows.head(100).write_parquet(tmp_path / "rows" / "a.parquet")
    rows.slice(100).write_parquet(tmp_path / "rows" / "b.parquet")
    return tmp_path / "rows"


def test_counts_and_estimates_are_shown_with_their_bounds(ran: Ran, files: Path) -> None:
    text = ran("sketch", files, "--distinct", "user", "--top-k", "lang", "--quantiles", "ms")
    for shown in ("300", "50", "en 200", "de 100", "p50", "300 rows read"):
        assert shown in text


def test_as_many_items_are_shown_as_were_requested(ran: Ran, files: Path) -> None:
    def items(*requested: str) -> list[str]:
        text = ran("sketch", files, *requested).split("─ \n")[1].split("300 rows read")[0]
        return [line for line in text.splitlines() if line.strip()]

    assert len(items("--top-k", "user", "-k", "5")) == 5
    assert len(items("--top-k", "user", "-k", "20")) == 20
    assert len(items("--top-k", "user")) == len(items("--sample", "ms")) == 10


def test_one_of_a_thing_is_in_the_singular(ran: Ran, tmp_path: Path) -> None:
    pl.DataFrame({"user": [1]}).write_csv(tmp_path / "one.csv")
    assert "1 row read" in ran("sketch", tmp_path / "one.csv", "--output", tmp_path / "one.parquet")
    assert "1 row, no windows" in ran("query", tmp_path / "one.parquet", "describe")


def test_groups_and_windows_as_json(ran: Ran, files: Path) -> None:
    lines = ran("sketch", files, "--time", "at", "--window", "1h", "--by", "lang", "--json").splitlines()
    rows = [json.loads(line) for line in lines if line.startswith("{")]
    assert [(row["lang"], row["rows"]) for row in rows] == [("de", 100), ("en", 200)]
    assert {row["window_start"][:19] for row in rows} == {"2026-06-01T12:00:00"}


def test_json_has_all_rows_or_as_many_as_the_limit(ran: Ran, files: Path) -> None:
    by_user = ("sketch", files, "--by", "user", "--by", "lang", "--json")
    assert len(ran(*by_user).splitlines()) == 100
    assert len(ran(*by_user, "--limit", "2").splitlines()) == 2


def test_sketches_are_kept_for_query(ran: Ran, files: Path, tmp_path: Path) -> None:
    kept = tmp_path / "minutes.parquet"
    text = ran("sketch", files, "--time", "at", "--window", "1m", "--limit", "2", "--output", kept)
    assert "58 more rows; --limit shows more" in text and f"the sketches are in {kept}" in text
    assert sg.read_table(kept).rollup(every="1h").answers()["rows"].to_list() == [300]


def test_times_may_be_numbers(ran: Ran, tmp_path: Path) -> None:
    pl.DataFrame({"ms": [1_767_225_600_000]}).write_csv(tmp_path / "rows.csv")
    timed = ("sketch", tmp_path / "rows.csv", "--time", "ms", "--time-unit", "ms", "--window", "1h")
    assert "2026-01-01 00:00 – 01:00" in ran(*timed)


def test_what_the_user_can_mend_is_one_line(ran: Ran, files: Path, tmp_path: Path) -> None:
    said = {
        ("sketch", "gone.parquet"): "there is no file gone.parquet",
        (
            "sketch",
            files,
            "--distinct",
            "nope",
        ): "'nope', which is not a column of the stream; there are at, lang, user, ms",
        (
            "sketch",
            files,
            "--time",
            "user",
            "--window",
            "1m",
        ): "'user' is a number: set its unit with --time-unit",
        ("sketch", files, "--time", "at", "--window", "soon"): "'soon' is not a duration",
        ("sketch", files, "--output", tmp_path / "out.xlsx"): "path must end in .parquet",
    }
    for arguments, message in said.items():
        text = ran(*arguments, code=1)
        assert message in text and "Traceback" not in text
    assert "windows need --time" in ran("sketch", files, "--window", "1m", code=2)


def test_empty_strings_are_not_counted_as_the_help_says(ran: Ran, tmp_path: Path) -> None:
    assert "except empty strings" in " ".join(ran("sketch", "--help").replace("│", " ").split())
    pl.DataFrame({"user": ["ann", "", None]}).write_parquet(tmp_path / "rows.parquet")
    (row,) = ran("sketch", tmp_path / "rows.parquet", "--distinct", "user", "--json").splitlines()
    assert json.loads(row)["distinct_user"]["estimate"] == 1


def test_it_fails_if_no_row_could_be_counted(ran: Ran, files: Path, tmp_path: Path) -> None:
    timed = ("sketch", files, "--time", "lang", "--window", "1h", "--output", tmp_path / "none.parquet")
    assert "no row could be counted: 300 of 300 have no usable time in 'lang'" in ran(*timed, code=1)
    assert not (tmp_path / "none.parquet").exists()
    (tmp_path / "empty.csv").write_text("lang,at\n")
    assert "there are no rows" in ran("sketch", tmp_path / "empty.csv")


def test_a_column_that_must_be_cast_is_for_python(ran: Ran, tmp_path: Path) -> None:
    days = pl.DataFrame({"dec": [Decimal("1.50")], "day": [date(2026, 6, 1)]})
    days.write_parquet(tmp_path / "days.parquet")
    said = {
        ("--distinct", "dec"): 'with_columns(pl.col("dec").cast(pl.String))',
        ("--top-k", "dec"): 'with_columns(pl.col("dec").cast(pl.String))',
        ("--quantiles", "day"): '.agg(day=sg.kll_quantiles("day"))',
    }
    for option, message in said.items():
        text = ran("sketch", tmp_path / "days.parquet", *option, code=1)
        assert "The command" in text and message in text
