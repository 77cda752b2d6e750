"""Trades that don't set the last price: both vendors' names of each condition, and what still counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from streamgauge.apps.stocks.formats.us_tapes import CONDITIONS, Condition
from streamgauge.operators.table.query import query

from ..tried import Tried, tried

AT_MS = 1_780_322_400_000
"""2026-06-01, 10:00 in New York."""


def polygon(
    number: int, price: float, size: int, condition: int | None, symbol: str = "AB"
) -> dict[str, Any]:
    listed = {} if condition is None else {"c": [14, condition]}
    trade = {
        "ev": "T",
        "sym": symbol,
        "x": 4,
        "i": str(number),
        "z": 3,
        "q": number,
        "t": AT_MS + 1000 * number,
    }
    return trade | {"p": price, "s": size} | listed


def alpaca(
    number: int, price: float, size: int, code: str | None, symbol: str = "AB", tape: str = "C"
) -> dict[str, Any]:
    at = f"2026-06-01T14:00:{number:02d}Z"
    trade = {"T": "t", "S": symbol, "x": "D", "i": number, "z": tape, "t": at, "p": price, "s": size}
    return trade | {"c": ["@"] if code is None else ["@", code]}


def of(tmp_path: Path, lines: list[Any]) -> Tried:
    path = tmp_path / "feed.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return tried(path, parts=["tape", "movers", "vwap"])


def prices(result: Tried) -> dict[str, list[Any]]:
    rows = query(result.tables["movers"]).select("symbol", "open", "high", "low", "close", "volume").rows()
    return {symbol: values for symbol, *values in rows}


NUMBERS = [(condition, number) for condition in CONDITIONS for number in condition.numbers]
CODES = [(condition, code) for condition in CONDITIONS for code in condition.codes]


@pytest.mark.slow
@pytest.mark.parametrize(("trade", "names"), [(polygon, NUMBERS), (alpaca, CODES)], ids=["polygon", "alpaca"])
def test_only_its_volume_counts_and_perhaps_its_extremes(
    trade: Any, names: list[tuple[Condition, Any]], tmp_path: Path
) -> None:
    """Each condition has a symbol of its own; all trade at the same times."""
    every: dict[str, tuple[Condition, list[Any]]] = {}
    for number, (condition, name) in enumerate(names):
        symbol = f"S{number}"
        sent = [(10.0, 100, None), (8.0, 20_000, name), (10.1, 100, None)]
        every[symbol] = condition, [trade(n, *values, symbol) for n, values in enumerate(sent, 1)]

    def each(*numbers: int) -> list[Any]:
        return [lines[number] for number in numbers for _, lines in every.values()]

    result = of(tmp_path, each(0, 1, 2))
    moved, tape = prices(result), query(result.tables["tape"]).sort("at")
    volumes = dict(query(result.tables["vwap"]).select("symbol", "volume").rows())
    blocks = {alert["key"][0]: alert["why"] for alert in result.of("block by shares")}
    assert len(every) > 10 and len(blocks) == len(result.of("block by shares")) == len(every)
    for symbol, (condition, _) in every.items():
        low = 8.0 if condition.extremes else 10.0
        assert moved[symbol] == [10.0, 10.1, low, 10.1, 20_200.0], condition
        unpriced = tape.filter(symbol=symbol)["unpriced"].to_list()
        assert unpriced == [None, condition.why, None], condition
        assert blocks[symbol].startswith(f"traded ({condition.why}): 20,000 at 8"), condition
        assert volumes[symbol] == (20_200.0 if condition.why == "odd lot" else 200.0), condition
    # A fall of 20 % in five minutes would be one of the market's price.
    assert not result.of("sharp drop") and not result.of("price band")
    # Nor does it open a day or close it.
    opened, closed = prices(of(tmp_path, each(1, 0))), prices(of(tmp_path, each(0, 1)))
    assert {symbol: row[0] for symbol, row in opened.items()} == dict.fromkeys(every, 10.0)
    assert {symbol: row[3] for symbol, row in closed.items()} == dict.fromkeys(every, 10.0)


def test_a_usual_trade_of_that_price_falls(tmp_path: Path) -> None:
    lines = [polygon(1, 10.0, 100, None), polygon(2, 8.0, 20_000, None)]
    assert len(of(tmp_path, lines).of("sharp drop")) == 1


@pytest.mark.slow
def test_b_is_an_average_price_on_two_of_the_tapes(tmp_path: Path) -> None:
    for tape, close in (("A", 10.0), ("B", 10.0), ("C", 8.0)):
        lines = [alpaca(1, 10.0, 100, None, tape=tape), alpaca(2, 8.0, 100, "B", tape=tape)]
        assert prices(of(tmp_path, lines))["AB"][3] == close


def test_a_corrected_close_is_no_trade(tmp_path: Path) -> None:
    for lines in (
        [polygon(1, 10, 5, None), polygon(2, 8, 5, 38)],
        [alpaca(1, 10, 5, None), alpaca(2, 8, 5, "9")],
    ):
        result = of(tmp_path, lines)
        assert prices(result)["AB"] == [10.0, 10.0, 10.0, 10.0, 5.0] and result.account.filtered == 1
