"""Lists of symbols: names, wildcards, files of thousands; the same as a column and one by one."""

from __future__ import annotations

import json
import re
from pathlib import Path

import polars as pl
import pytest

from streamgauge.apps.stocks.symbol_lists import SymbolList
from streamgauge.operators.table.query import query

from .tried import tried

SYMBOLS = ["AAPL", "BRK.A", "BRK.B", "BTCUSDT", "BTCDOWNUSDT", "ETH-USD", "A+B", "brk.a", ""]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", SYMBOLS),
        ("*", SYMBOLS),
        ("AAPL, ETH-USD", ["AAPL", "ETH-USD"]),
        ("BRK.?", ["BRK.A", "BRK.B"]),
        ("BTC*,!*DOWN*", ["BTCUSDT"]),
        ("!BRK.*,!AAPL", [one for one in SYMBOLS if not one.startswith("BRK") and one != "AAPL"]),
        ("A+*", ["A+B"]),
        (".*", []),
    ],
)
def test_names_and_wildcards(text: str, wanted: list[str]) -> None:
    listed = SymbolList.of(text, "symbols")
    assert [one for one in SYMBOLS if one in listed] == wanted
    matches = listed.matches(pl.col("symbol"))
    frame = pl.DataFrame({"symbol": SYMBOLS})
    assert (frame if matches is None else frame.filter(matches))["symbol"].to_list() == wanted


def test_thousands_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_text("# mine\n" + "\n".join(f"S{n}" for n in range(5_000)) + "\nBRK.*  # all of it\n!S7\n")
    listed = SymbolList.of(f"@{path},AAPL", "tier1")
    assert [one in listed for one in ("S4999", "S7", "BRK.A", "AAPL", "MSFT")] == [
        True,
        False,
        True,
        True,
        False,
    ]
    frame = pl.DataFrame({"symbol": ["S4999", "S7", "BRK.A", "AAPL", "MSFT"]})
    assert frame.filter(listed.matches(pl.col("symbol"))).height == 3


@pytest.mark.parametrize("text", ["!", "@nowhere.txt", "AAPL,@"])
def test_what_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape("--set symbols")):
        SymbolList.of(text, "symbols")


def test_other_symbols_are_filtered(tmp_path: Path) -> None:
    path = tmp_path / "alpaca.jsonl"
    trade = {"T": "t", "x": "D", "p": 10.0, "s": 1, "t": "2026-06-01T14:00:00Z"}
    names = ["AAPL", "BRK.A", "MSFT"]
    path.write_text("\n".join(json.dumps({**trade, "S": one, "i": n}) for n, one in enumerate(names)) + "\n")
    result = tried(path, {"symbols": "BRK.*,MSFT"}, parts=["tape"])
    assert (result.account.read, result.account.counted, result.account.filtered) == (3, 2, 1)
    assert query(result.tables["tape"])["symbol"].sort().to_list() == ["BRK.A", "MSFT"]
