"""Exchanges' own files of instruments: how much a contract is, of what, and in which currency."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from streamgauge.apps.stocks.instruments.instrument import Instrument
from streamgauge.apps.stocks.instruments.instrument_files import read_instruments

DAPI = {
    "symbols": [
        {"symbol": "BTCUSD_PERP", "contractSize": 100, "baseAsset": "BTC", "quoteAsset": "USD"},
        {"symbol": "ADAUSD_PERP", "contractSize": 10, "baseAsset": "ADA", "quoteAsset": "USD"},
    ]
}
FAPI = {"symbols": [{"symbol": "BTCUSDT", "contractType": "PERPETUAL", "quoteAsset": "USDT"}]}
OKX = {
    "code": "0",
    "data": [
        {"instId": "BTC-USDT", "instType": "SPOT", "ctVal": "", "quoteCcy": "USDT", "ctType": ""},
        {
            "instId": "BTC-USD-SWAP",
            "instType": "SWAP",
            "ctType": "inverse",
            "ctVal": "100",
            "ctMult": "1",
            "ctValCcy": "USD",
            "settleCcy": "BTC",
        },
        {
            "instId": "BTC-USDT-SWAP",
            "instType": "SWAP",
            "ctType": "linear",
            "ctVal": "0.01",
            "ctMult": "1",
            "ctValCcy": "BTC",
            "settleCcy": "USDT",
        },
        {
            "instId": "BTC-USD-220514-22000-C",
            "instType": "OPTION",
            "ctType": "",
            "ctVal": "1",
            "ctMult": "0.1",
            "ctValCcy": "BTC",
            "settleCcy": "BTC",
        },
    ],
}
BYBIT = {
    "retCode": 0,
    "result": {
        "category": "inverse",
        "list": [
            {
                "symbol": "BTCUSD",
                "contractType": "InversePerpetual",
                "quoteCoin": "USD",
                "settleCoin": "BTC",
            },
            {"symbol": "BTCPERP", "contractType": "LinearPerpetual", "quoteCoin": "USDC"},
        ],
    },
}
DERIBIT = {
    "result": [
        {
            "instrument_name": "BTC-PERPETUAL",
            "kind": "future",
            "quote_currency": "USD",
            "contract_size": 10.0,
            "future_type": "reversed",
        },
        {
            "instrument_name": "BTC-24SEP21-40000-P",
            "kind": "option",
            "quote_currency": "BTC",
            "contract_size": 1.0,
        },
        {
            "instrument_name": "UNI_USDC-PERPETUAL",
            "kind": "future",
            "quote_currency": "USDC",
            "contract_size": 1,
            "future_type": "linear",
        },
    ]
}
KRAKEN = {"error": [], "result": {"XXBTZEUR": {"altname": "XBTEUR", "wsname": "XBT/EUR", "quote": "ZEUR"}}}
KRAKEN_FUTURES = {
    "result": "success",
    "instruments": [
        {"symbol": "pi_xbtusd", "type": "futures_inverse", "contractSize": 1, "tradeable": True},
        {
            "symbol": "PF_XBTUSD",
            "type": "flexible_futures",
            "contractSize": 1,
            "tradeable": True,
            "quote": "USD",
        },
        {"symbol": "in_xbtusd", "type": "spot index", "tradeable": False},
    ],
}
GEMINI = {
    "symbol": "BTCGUSDPERP",
    "base_currency": "BTC",
    "quote_currency": "GUSD",
    "contract_type": "linear",
    "contract_price_currency": "GUSD",
}
COINBASE = [{"id": "ETH-BTC", "base_currency": "ETH", "quote_currency": "BTC"}]
BITSTAMP = [{"name": "XRP/EUR", "url_symbol": "xrpeur", "trading": "Enabled"}]
DATABENTO = {
    "hd": {"rtype": 19, "publisher_id": 1, "instrument_id": 5482},
    "raw_symbol": "ESH1",
    "unit_of_measure_qty": "50000000000",
    "currency": "USD",
}
BITMEX = [
    {
        "symbol": "XBTUSD",
        "quoteCurrency": "USD",
        "isQuanto": False,
        "isInverse": True,
        "multiplier": -100000000,
        "underlyingToSettleMultiplier": -100000000,
    },
    {
        "symbol": "LINKUSDT",
        "quoteCurrency": "USDT",
        "isQuanto": False,
        "isInverse": False,
        "multiplier": 100,
        "underlyingToPositionMultiplier": 10000,
    },
    {"symbol": "ETHUSD", "quoteCurrency": "USD", "isQuanto": True, "isInverse": False, "multiplier": 100},
]
GATE = [
    {"name": "BTC_USDT", "type": "direct", "quanto_multiplier": "0.0001"},
    {"name": "BTC_USD", "type": "inverse", "quanto_multiplier": "0"},
    {"name": "ETH_USD", "type": "direct", "quanto_multiplier": "0.000001"},
]
DELTA = {
    "success": True,
    "result": [
        {
            "symbol": symbol,
            "contract_value": size,
            "notional_type": kind,
            "quoting_asset": {"symbol": "USD"},
            "is_quanto": symbol == "LTCUSDQ",
        }
        for symbol, size, kind in (
            ("BTCUSD", "0.001", "vanilla"),
            ("ETHUSD_I", "1", "inverse"),
            ("LTCUSDQ", "1", "vanilla"),
        )
    ],
}
OWN = [{"symbol": "NOVA", "contract": 25, "currency": "EUR"}]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (
            DAPI,
            {
                "BTCUSD_PERP": Instrument("USD", 100, inverse=True),
                "ADAUSD_PERP": Instrument("USD", 10, inverse=True),
            },
        ),
        (FAPI, {"BTCUSDT": Instrument("USDT")}),
        (
            OKX,
            {
                "BTC-USDT": Instrument("USDT"),
                "BTC-USD-SWAP": Instrument("USD", 100, inverse=True),
                "BTC-USDT-SWAP": Instrument("USDT", 0.01),
                "BTC-USD-220514-22000-C": Instrument("BTC", 0.1),
            },
        ),
        (BYBIT, {"BTCUSD": Instrument("USD", 1, inverse=True), "BTCPERP": Instrument("USDC")}),
        (
            DERIBIT,
            {
                "BTC-PERPETUAL": Instrument("USD", 1, inverse=True),
                "BTC-24SEP21-40000-P": Instrument("BTC"),
                "UNI_USDC-PERPETUAL": Instrument("USDC"),
            },
        ),
        (KRAKEN, {"XBT/EUR": Instrument("EUR"), "BTC/EUR": Instrument("EUR")}),
        (
            KRAKEN_FUTURES,
            {"PI_XBTUSD": Instrument("USD", 1, inverse=True), "PF_XBTUSD": Instrument("USD")},
        ),
        (GEMINI, {"BTCGUSDPERP": Instrument("GUSD")}),
        (COINBASE, {"ETH-BTC": Instrument("BTC")}),
        (BITSTAMP, {"xrpeur": Instrument("EUR")}),
        (DATABENTO, {"ESH1": Instrument("USD", 50), "5482": Instrument("USD", 50)}),
        # What is paid in another currency than its price's has no value that follows from these.
        (BITMEX, {"XBTUSD": Instrument("USD", 1, inverse=True), "LINKUSDT": Instrument("USDT", 0.0001)}),
        (GATE, {"BTC_USDT": Instrument("USDT", 0.0001), "BTC_USD": Instrument("USD", 1, inverse=True)}),
        (DELTA, {"BTCUSD": Instrument("USD", 0.001), "ETHUSD_I": Instrument("USD", 1, inverse=True)}),
        (OWN, {"NOVA": Instrument("EUR", 25)}),
    ],
)
def test_an_exchange_s_file_is_read(tmp_path: Path, given: Any, wanted: dict[str, Instrument]) -> None:
    path = tmp_path / "instruments.json"
    path.write_text(json.dumps(given))
    assert read_instruments(str(path)) == wanted


def test_several_files_and_answers_a_line_behind_their_times(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(FAPI))
    lines = [
        f"https://x.example/v1 -> 162691640{n}.5: {json.dumps(one)}" for n, one in enumerate((DAPI, OKX))
    ]
    (tmp_path / "b.txt").write_text("\n".join([*lines, 'configuration: {"trades": []}']))
    instruments = read_instruments(f"{tmp_path / 'a.json'}, {tmp_path / 'b.txt'}")
    assert {"BTCUSDT", "BTCUSD_PERP", "BTC-USDT-SWAP"} <= instruments.keys()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "No such file"),
        ("{broken", "can't be read"),
        ('{"prices": [1]}', "holds no instrument"),
        ('[{"symbol": "X", "contract": "much", "currency": "USD"}]', "can't be read"),
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path: Path, text: str | None, said: str) -> None:
    path = tmp_path / "instruments.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ValueError, match=f"--set instruments=.*{said}"):
        read_instruments(str(path))
