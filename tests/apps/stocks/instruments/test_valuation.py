"""What trades are worth: by the file, by the name, or not at all."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from streamgauge.apps.stocks.instruments import instrument_names as names
from streamgauge.apps.stocks.instruments.valuation import valued

from ....cases import each

SETTINGS = {"instruments": "", "currency": "USD", "rates": ""}


def worth(
    symbol: str, by: tuple, venue: str | None = None, **given: str
) -> tuple[float | None, str | None, float | None]:
    """The value of three at 50, why there is none, and how many shares that is."""
    columns = valued({**SETTINGS, **given}, by)
    frame = pl.DataFrame({"symbol": [symbol], "price": [50.0], "size": [3.0], "venue": [venue]})
    frame = frame.with_columns(pl.col("venue").cast(pl.String))
    return frame.select(value=columns.value, unvalued=columns.unvalued, shares=columns.shares).row(0)


@pytest.mark.slow
@each(
    ("by", "symbol", "value"),
    [
        ("BINANCE", "BTCUSDT", 150),
        ("BINANCE", "BTCUSD_PERP", 300),
        ("BINANCE", "BTCUSD_210924", 300),
        ("BINANCE", "ETHUSD_PERP", 30),
        ("BINANCE", "BTCUSDT_210924", 150),
        ("BINANCE", "DOTBUSD", 150),
        ("BINANCE", "BTC-210924-40000-C", "contract"),
        ("BINANCE", "ETHBTC", "currency"),
        ("COINBASE", "BTC-USD", 150),
        ("COINBASE", "BTC-EUR", "currency"),
        ("COINBASE", "BIT-29NOV24-CDE", "contract"),
        ("OKX", "BTC-USDT", 150),
        ("OKX", "BTC-USDT-SWAP", "contract"),
        ("OKX", "BTC-USD-220527", "contract"),
        ("BYBIT", "BTCUSDT", 150),
        ("BYBIT", "BTCUSD", 3),
        ("BYBIT", "DOTUSD", 3),
        ("BYBIT", "ETHUSDZ24", 3),
        ("BYBIT", "BTCPERP", 150),
        ("BYBIT", "BTC-24MAR23", 150),
        ("BYBIT", "BTC-26MAY23-34000-C", "contract"),
        ("KRAKEN", "XBT/USD", 150),
        ("KRAKEN", "ETH/XBT", "currency"),
        ("KRAKEN", "PI_XBTUSD", 3),
        ("KRAKEN", "FI_ETHUSD_211231", 3),
        ("KRAKEN", "PF_XBTUSD", 150),
        ("BITSTAMP", "btcusd", 150),
        ("BITSTAMP", "xrpeur", "currency"),
        ("GEMINI", "BTCGUSDPERP", 150),
        ("DERIBIT", "BTC-PERPETUAL", 3),
        ("DERIBIT", "BTC-25MAR22", 3),
        ("DERIBIT", "UNI_USDC-PERPETUAL", 150),
        ("DERIBIT", "BTC-24SEP21-40000-P", "currency"),
        ("POLYGON", "BRK.A", 150),
        ("POLYGON", "BTC-USD", 150),
        ("POLYGON", "O:SPY241220P00720000", 15_000),
        ("POLYGON", "I:SPX", "contract"),
        ("ALPACA", "BTC/USD", 150),
        ("ALPACA", "AAPL", 150),
        ("TABLES", "AAPL", 150),
        ("TABLES", "ETHUSD_PERP", 30),
        ("TABLES", "BTCUSD_PERP-aggTrades-2024-01-01", 300),
        ("TABLES", "DOGEUSDT-1m-2024-01-01", 150),
        ("TABLES", "ETHBTC-trades-2024-01-01", "currency"),
        ("TABLES", "BTC-USD", 150),
        ("TABLES", "BRK-B", 150),
        ("TABLES", "SPY241220P00720000", 15_000),
        ("TABLES", "CL=F", "contract"),
        ("TABLES", "ESZ4", "contract"),
        ("TABLES", "CLK20", "contract"),
        ("TABLES", "BTC-USDT-SWAP", "contract"),
        ("TABLES", "BTC-PERPETUAL", "contract"),
        ("TABLES", "BTC-24SEP21-40000-P", "contract"),
        ("TABLES", "XBTUSD", "contract"),
    ],
)
def test_a_name_says_what_it_is_or_nothing(by: str, symbol: str, value: float | str) -> None:
    value_, why, _ = worth(symbol, getattr(names, by))
    assert (value_, why) == ((None, value) if isinstance(value, str) else (value, None))


@pytest.mark.slow
@each(
    ("venue", "symbol", "value"),
    [
        ("bitmex", "XBTUSD", 3),
        ("bitmex", "ETHUSD", "contract"),
        ("deribit", "BTC-PERPETUAL", 3),
        ("Deribit", "BTC-24SEP21-40000-P", "currency"),
        ("binance-delivery", "BTCUSD_PERP", 300),
        ("okex-swap", "BTC-USDT-SWAP", "contract"),
        ("OKX", "BTC-USDT", 150),
        ("gate-io", "BTC_USDT", 150),
        ("gate-io-futures", "BTC_USDT", "contract"),
        ("huobi-dm-swap", "BTC-USD", "contract"),
        ("cryptofacilities", "PI_XBTUSD", 3),
        ("CME", "ES", "contract"),
        ("NYSE", "ES", 150),
        ("Q", "AAPL", 150),
        (None, "AAPL", 150),
    ],
)
def test_a_file_s_venue_decides_what_its_symbols_are(
    venue: str | None, symbol: str, value: float | str
) -> None:
    value_, why, _ = worth(symbol, names.TABLES, venue)
    assert (value_, why) == ((None, value) if isinstance(value, str) else (value, None))


def test_sizes_are_shares_of_stocks_alone() -> None:
    assert [worth(one, names.ALPACA)[2] for one in ("AAPL", "DOGE/USD")] == [3.0, None]
    tables = ("AAPL", "DOGEUSDT-trades-2024-01", "ETHUSD_PERP", "DOGE-USD", "CL=F")
    assert [worth(one, names.TABLES)[2] for one in tables] == [3.0, None, None, None, None]


def test_rates_and_the_currency_are_those_that_are_set() -> None:
    assert worth("BTC-EUR", names.COINBASE, rates="EUR=1.1, BTC=60000")[0] == pytest.approx(165)
    assert worth("BTC-EUR", names.COINBASE, currency="EUR")[0] == 150
    assert worth("BTC-USDT", names.OKX, currency="EUR")[1] == "currency"
    assert worth("BTC-USDT", names.OKX, currency="EUR", rates="USD=0.5")[0] == 75


def test_a_file_goes_before_the_name(tmp_path: Path) -> None:
    path = tmp_path / "own.json"
    path.write_text(json.dumps([{"symbol": "AAPL", "contract": 100, "currency": "USD"}]))
    assert worth("AAPL", names.ALPACA, instruments=str(path)) == (15_000, None, None)
    assert worth("MSFT", names.ALPACA, instruments=str(path))[0] == 150


@pytest.mark.parametrize("rates", ["EUR", "EUR=much", "EUR=0", "=2", "EUR=inf"])
def test_rates_that_are_none_are_refused(rates: str) -> None:
    with pytest.raises(ValueError, match="--set rates="):
        valued({**SETTINGS, "rates": rates}, names.BINANCE)
