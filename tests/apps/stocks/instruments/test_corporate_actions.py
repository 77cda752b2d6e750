"""Splits that a file names: of daily bars and of trades, by the market's dates; wrong files are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ..tried import tried


def actions(tmp_path: Path, *lines: str, header: str = "symbol,date,split") -> dict[str, str]:
    path = tmp_path / "actions.csv"
    path.write_text("\n".join([header, *lines]) + "\n")
    return {"actions": str(path)}


@pytest.mark.slow
def test_a_listed_split_of_days_is_no_drop(tmp_path: Path) -> None:
    path = tmp_path / "ODD.csv"
    closes = {"2026-06-01": 170.0, "2026-06-02": 10.3, "2026-06-03": 10.0, "2026-06-04": 8.5}
    path.write_text("\n".join(["Date,Close", *(f"{day},{close}" for day, close in closes.items())]) + "\n")
    # 17 for 1 is no usual ratio, so that nothing guesses it.
    assert [one["at"][:10] for one in tried(path).of("session drop")] == ["2026-06-02", "2026-06-04"]
    result = tried(path, actions(tmp_path, "ODD,2026-06-02,17", "OTHER,2026-06-04,2"))
    assert [one["at"][:10] for one in result.of("session drop")] == ["2026-06-04"]
    [split] = result.of("split")
    assert split["value"] == 17 and "the file of corporate actions" in split["why"]


def test_a_session_s_date_is_that_of_the_market(tmp_path: Path) -> None:
    path = tmp_path / "feed.jsonl"
    trades = [("2026-06-01T15:00:00Z", 10.0), ("2026-06-01T19:59:00Z", 10.0), ("2026-06-02T00:30:00Z", 10.0)]
    trades += [("2026-06-02T13:30:00Z", 130.0), ("2026-06-02T14:00:00Z", 131.0)]
    lines = [
        {"T": "t", "S": "A", "x": "D", "p": p, "s": 5, "t": at, "i": n} for n, (at, p) in enumerate(trades)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert tried(path, parts=["tape"]).of("session gain")
    result = tried(path, actions(tmp_path, "A, 2026-06-02, 1:13"), parts=["tape"])
    assert not result.of("session gain")
    assert [one["at"] for one in result.of("split")] == ["2026-06-02T13:30:00+00:00"]


@pytest.mark.parametrize(
    ("line", "header", "said"),
    [
        ("A,soon,2", "symbol,date,split", "Invalid isoformat"),
        ("A,2026-06-01,0", "symbol,date,split", "'0' is not a ratio"),
        ("A,2026-06-01,two", "symbol,date,split", "'two' is not a ratio"),
        ("A,2026-06-01,2", "ticker,date,split", "'symbol'"),
        ("A", "symbol,date,split", "can't be read"),
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path: Path, line: str, header: str, said: str) -> None:
    path = tmp_path / "X.csv"
    path.write_text("Date,Close\n2026-06-01,1\n")
    with pytest.raises(ValueError, match=f"--set actions=.*{said}.*symbol,date,split"):
        tried(path, actions(tmp_path, line, header=header), parts=["tape"])
    with pytest.raises(ValueError, match=r"--set actions=.*No such file"):
        tried(path, {"actions": str(tmp_path / "none.csv")}, parts=["tape"])
