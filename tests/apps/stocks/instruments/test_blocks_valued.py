"""Blocks by value: none for contracts taken for coins, and what can't be valued is said once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamgauge.operators.table.query import query

from ..tried import tried

AT_MS = 1_626_916_405_049


def binance(tmp_path: Path, *trades: tuple[str, str, str]) -> Path:
    path = tmp_path / "binance.jsonl"
    lines = [
        {"e": "aggTrade", "E": AT_MS, "s": symbol, "a": n, "p": price, "q": size, "T": AT_MS + n, "m": True}
        for n, (symbol, price, size) in enumerate(trades)
    ]
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    return path


def test_coin_margined_contracts_are_not_coins(tmp_path: Path) -> None:
    path = binance(tmp_path, ("ETHUSD_210924", "1991.89", "160"), ("BTCUSD_PERP", "32623.3", "2000"))
    result = tried(path, parts=["tape", "unvalued"])
    assert [(one["key"], one["value"]) for one in result.of("block by value")] == [
        (["BTCUSD_PERP", "Binance", 1], 200_000)
    ]
    assert "2,000 at 32,623.30, 200,000 in all" in result.of("block by value")[0]["why"]
    assert not result.of("not valued")


def test_what_is_unknown_is_said_once_and_counted(tmp_path: Path) -> None:
    day = 86_400_000
    trades = [("ETHBTC", "0.06", "1e9"), ("BTC-210924-40000-C", "900", "1e6")]
    path = binance(tmp_path, *(trades * 3))
    lines = path.read_text().splitlines()
    later = [json.dumps({**json.loads(line), "T": AT_MS + day, "a": 100 + n}) for n, line in enumerate(lines)]
    path.write_text("\n".join([*lines, *later]) + "\n")
    result = tried(path, parts=["tape", "market", "unvalued"])
    assert not result.of("block by value")
    said = {one["key"][1]: one["why"] for one in result.of("not valued")}
    assert len(result.of("not valued")) == 2
    assert said["contract"].startswith("3 trades of BTC-210924-40000-C have no value: the size of a contract")
    assert "--set instruments=FILE" in said["contract"] and "--set rates=" in said["currency"]
    assert query(result.tables["market"])["unvalued"].to_list() == [6, 6]
    rated = tried(path, {"rates": "BTC=60000"}, parts=["tape", "unvalued"])
    assert len(rated.of("block by value")) == 6
    assert [one["key"] for one in rated.of("not valued")] == [["Binance", "contract"]]


def test_coins_of_a_stock_feed_are_no_blocks_by_shares(tmp_path: Path) -> None:
    path = tmp_path / "alpaca.jsonl"
    trade = {"T": "t", "p": 0.1, "s": 20_000, "t": "2026-06-01T14:00:00Z"}
    path.write_text(
        "\n".join(json.dumps({**trade, "S": one, "i": n}) for n, one in enumerate(("DOGE/USD", "PENNY")))
        + "\n"
    )
    assert [one["key"][0] for one in tried(path, parts=["tape"]).of("block by shares")] == ["PENNY"]


@pytest.mark.slow
def test_contracts_in_a_file_are_no_blocks_unless_their_size_is_known(tmp_path: Path) -> None:
    path = tmp_path / "tape.csv"
    rows = [("CME", "ESU6"), ("bitmex", "ETHUSD"), ("bitmex", "XBTUSD"), ("NYSE", "KO")]
    lines = [f"{n},2026-06-01 14:00:0{n},{venue},{name},buy,60,15000" for n, (venue, name) in enumerate(rows)]
    path.write_text("\n".join(["id,timestamp,exchange,symbol,side,price,amount", *lines]) + "\n")
    result = tried(path, {"block_value": "15000"}, parts=["tape", "unvalued"])
    assert {one["key"][0]: one["value"] for one in result.of("block by value")} == {
        "XBTUSD": 15_000.0,
        "KO": 900_000.0,
    }
    assert [one["key"][0] for one in result.of("block by shares")] == ["KO"]
    assert {tuple(one["key"]) for one in result.of("not valued")} == {
        ("CME", "contract"),
        ("bitmex", "contract"),
    }
    sizes = [{"symbol": "ESU6", "contract": 50, "currency": "USD"}]
    (tmp_path / "sizes.json").write_text(json.dumps(sizes))
    known = tried(path, {"instruments": str(tmp_path / "sizes.json")}, parts=["tape"])
    assert {one["key"][0]: one["value"] for one in known.of("block by value")}["ESU6"] == 60 * 15_000 * 50


@pytest.mark.parametrize("name", ["instruments", "symbols"])
def test_a_file_that_is_not_there_is_refused(tmp_path: Path, name: str) -> None:
    at = "@" if name == "symbols" else ""
    with pytest.raises(ValueError, match=f"--set {name}=.*No such file"):
        tried(binance(tmp_path, ("BTCUSDT", "1", "1")), {name: f"{at}{tmp_path}/none"}, parts=["tape"])
