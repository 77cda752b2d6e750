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


def polygon(number: int, price: float, size: int, condition: int | None) -> dict[str, Any]:
    listed = {} if condition is None else {"c": [14, condition]}
    trade = {
        "ev": "T",
        "sym": "AB",
        "x": 4,
        "i": str(number),
        "z": 3,
        "q": number,
        "t": AT_MS + 1000 * number,
    }
    return trade | {"p": price, "s": size} | listed


def alpaca(number: int, price: float, size: int, code: str | None, tape: str = "C") -> dict[str, Any]:
    at = f"2026-06-01T14:00:{number:02d}Z"
    trade = {"T": "t", "S": "AB", "x": "D", "i": number, "z": tape, "t": at, "p": price, "s": size}
    return trade | {"c": ["@"] if code is None else ["@", code]}


def of(tmp_path: Path, lines: list[Any]) -> Tried:
    path = tmp_path / "feed.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return tried(path, parts=["tape", "movers", "vwap"])


def prices(result: Tried) -> tuple[Any, ...]:
    return query(result.tables["movers"]).select("open", "high", "low", "close", "volume").row(0)


EVERY = [
    *((one, vendor, name) for one in CONDITIONS for vendor, name in (("polygon", n) for n in one.numbers)),
    *((one, "alpaca", code) for one in CONDITIONS for code in one.codes),
]


@pytest.mark.parametrize(("condition", "vendor", "name"), EVERY, ids=[f"{v}-{n}" for _, v, n in EVERY])
def test_only_its_volume_counts_and_perhaps_its_extremes(
    condition: Condition, vendor: str, name: Any, tmp_path: Path
) -> None:
    trade: Any = {"polygon": polygon, "alpaca": alpaca}[vendor]
    lines = [trade(1, 10.0, 100, None), trade(2, 8.0, 20_000, name), trade(3, 10.1, 100, None)]
    result = of(tmp_path, lines)
    low = 8.0 if condition.extremes else 10.0
    assert prices(result) == (10.0, 10.1, low, 10.1, 20_200.0)
    assert query(result.tables["tape"]).sort("at")["unpriced"].to_list() == [None, condition.why, None]
    # A fall of 20 % in five minutes would be one of the market's price.
    assert not result.of("sharp drop") and not result.of("price band")
    [block] = result.of("block by shares")
    assert block["why"].startswith(f"traded ({condition.why}): 20,000 at 8")
    volume = 20_200.0 if condition.why == "odd lot" else 200.0
    assert query(result.tables["vwap"])["volume"].to_list() == [volume]
    # Nor does it open a day or close it.
    assert prices(of(tmp_path, [lines[1], lines[0]]))[0] == 10.0
    assert prices(of(tmp_path, [lines[0], lines[1]]))[3] == 10.0


def test_a_usual_trade_of_that_price_falls(tmp_path: Path) -> None:
    lines = [polygon(1, 10.0, 100, None), polygon(2, 8.0, 20_000, None)]
    assert len(of(tmp_path, lines).of("sharp drop")) == 1


def test_b_is_an_average_price_on_two_of_the_tapes(tmp_path: Path) -> None:
    for tape, close in (("A", 10.0), ("B", 10.0), ("C", 8.0)):
        lines = [alpaca(1, 10.0, 100, None, tape), alpaca(2, 8.0, 100, "B", tape)]
        assert prices(of(tmp_path, lines))[3] == close


def test_a_corrected_close_is_no_trade(tmp_path: Path) -> None:
    for lines in (
        [polygon(1, 10, 5, None), polygon(2, 8, 5, 38)],
        [alpaca(1, 10, 5, None), alpaca(2, 8, 5, "9")],
    ):
        result = of(tmp_path, lines)
        assert prices(result) == (10.0, 10.0, 10.0, 10.0, 5.0) and result.account.filtered == 1
