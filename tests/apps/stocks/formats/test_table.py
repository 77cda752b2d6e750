"""CSV of many makers: which column is what, which form a time has, what is a bar, a day or a trade."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from streamgauge.apps.jobs.job import Job
from streamgauge.apps.registry import app_of
from streamgauge.apps.stocks.formats.moments import moment
from streamgauge.apps.stocks.formats.table import PriceTable
from streamgauge.operators.formats.messages import Messages
from streamgauge.operators.table.query import query

from ....cases import each
from ..tried import tried

RIVER = "Date,Open,High,Low,Close,Adj Close,Volume\n1996-12-12,0.86,0.87,0.85,0.8526,0.18,21750400\n"
VEGA = (
    "date,open,high,low,close,adjclose,volume\n2000-01-03,1469.25,1478.0,1438.36,1455.22,1455.22,931800000\n"
)
STOCKS = "symbol,date,price\nMSFT,Jan 1 2000,39.81\nAAPL,Dec 1 1999,25.94\n"
NASDAQ = 'Date,Close/Last,Volume,Open,High,Low\n03/08/2022,$157.44,"131,148,300",$158.82,$162.88,$155.80\n'
MINUTES = "timestamp;o;h;l;c;v\n2020-01-02 14:30;1;2;0.5;1.5;100\n"
KLINES = "1617753600000,58800.0,59000.5,58700,58900.1,12.5,1617753659999,735000.1,400,6.2,365000,0\n"
TRADES = "id,price,qty,quote_qty,time,is_buyer_maker\n7,58800.01,0.5,29400,1617753600011,True\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (RIVER, ("file", None, datetime(1996, 12, 12), 0.8526, 0.86, 0.87, 0.85, 21750400.0, 86_400, None)),
        (
            VEGA,
            (
                "file",
                None,
                datetime(2000, 1, 3),
                1455.22,
                1469.25,
                1478.0,
                1438.36,
                931800000.0,
                86_400,
                None,
            ),
        ),
        (STOCKS, ("AAPL", None, datetime(1999, 12, 1), 25.94, 25.94, 25.94, 25.94, None, 86_400, None)),
        (
            NASDAQ,
            ("file", None, datetime(2022, 3, 8), 157.44, 158.82, 162.88, 155.8, 131148300.0, 86_400, None),
        ),
        (MINUTES, ("file", None, datetime(2020, 1, 2, 14, 30), 1.5, 1.0, 2.0, 0.5, 100.0, 60, None)),
        (KLINES, ("file", None, datetime(2021, 4, 7), 58900.1, 58800.0, 59000.5, 58700.0, 12.5, 60, None)),
        (
            TRADES,
            (
                "file",
                7,
                datetime(2021, 4, 7, 0, 0, 0, 11000),
                58800.01,
                58800.01,
                58800.01,
                58800.01,
                0.5,
                0,
                "sell",
            ),
        ),
    ],
)
def test_the_header_says_what_is_what(tmp_path: Path, text: str, wanted: tuple) -> None:
    path = tmp_path / "file.csv"
    path.write_text(text)
    result = tried(path, parts=["tape"])
    assert result.account.counted == len(text.splitlines()) - (text is not KLINES)
    names = ["symbol", "seq", "at", "price", "open", "high", "low", "size", "span", "side"]
    row = query(result.tables["tape"]).sort("at").select(names).row(0)
    assert (*row[:2], row[2].replace(tzinfo=None), *row[3:]) == wanted


@each(
    ("text", "wanted", "daily"),
    [
        ("2000-01-03", "2000-01-03T00:00:00", True),
        ("2000-01-03T00:00:00.000Z", "2000-01-03T00:00:00", True),
        ("2000-01-03 00:00:00-05:00", "2000-01-03T00:00:00", True),
        ("20000103", "2000-01-03T00:00:00", True),
        ("01/03/2000", "2000-01-03T00:00:00", True),
        ("3-Jan-00", "2000-01-03T00:00:00", True),
        ("Jan 3, 2000", "2000-01-03T00:00:00", True),
        ("January 3, 2000", "2000-01-03T00:00:00", True),
        ("1/3/2000 9:30", "2000-01-03T09:30:00", False),
        ("01/03/2000 01:30:05 PM", "2000-01-03T13:30:05", False),
        ("2000-01-03 09:30:00-05:00", "2000-01-03T14:30:00", False),
        ("946857600", "2000-01-03T00:00:00", False),
        ("946857600123", "2000-01-03T00:00:00.123000", False),
        ("946857600123456789", "2000-01-03T00:00:00.123456", False),
    ],
)
def test_times_of_many_forms(text: str, wanted: str, daily: bool) -> None:
    result = moment(text)
    assert result is not None
    reported = datetime.fromtimestamp(result[0] // 1_000_000, UTC).replace(microsecond=result[0] % 1_000_000)
    assert (reported.replace(tzinfo=None).isoformat(), result[1]) == (wanted, daily)


@pytest.mark.parametrize("text", ["", "soon", "13/14/2000", "2000-13-01", "12", "99:99"])
def test_what_is_no_time(text: str) -> None:
    assert moment(text) is None


def test_a_pattern_says_which_is_the_day() -> None:
    result = moment("03/01/2000", "%d/%m/%Y")
    assert result is not None and datetime.fromtimestamp(result[0] / 1e6, UTC).date() == date(2000, 1, 3)


def test_files_are_replayed_in_the_order_of_time_and_broken_lines_stay(tmp_path: Path) -> None:
    path = tmp_path / "many.csv"
    path.write_text(
        "Name,date,close\nB,2020-01-02,2\nB,2020-01-03,x\nB,soon,3\nA,2020-01-01,1\nA,2020-01-02\n"
    )
    job = Job.of(app_of("stocks"), recording=path)
    sent = [message.value.decode().split("\n")[1] for message in job.form.messages(path, job.settings)]
    assert sent[0] == "A,2020-01-01,1" and sorted(sent) == sorted(path.read_text().splitlines()[1:])
    result = tried(path, parts=["tape"])
    assert (result.account.read, result.account.counted, result.account.dead_lettered) == (5, 2, 3)
    assert {reason.split()[0] for reason in result.refused} == {"price", "'soon'", "2"}


def test_a_file_of_something_else_is_none_of_it(tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    path.write_text("user,page\nann,/\n")
    with pytest.raises(ValueError, match="matches no format of stocks"):
        Job.of(app_of("stocks"), recording=path)


@pytest.mark.parametrize(
    "text",
    [
        "exchange,symbol,timestamp,is_snapshot,side,price,amount\nx,BTC,1585699200245000,true,ask,6421.5,18\n",
        "symbol,timestamp,first_update_id,side,update_type,price,qty\nBTC,1667347199939,20,a,set,20472.8,0\n",
    ],
)
def test_orders_of_a_book_are_no_trades(tmp_path: Path, text: str) -> None:
    path = tmp_path / "book.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match="matches no format of stocks"):
        Job.of(app_of("stocks"), recording=path)
    decoded = PriceTable().decode(Messages.of([text.strip().encode()]))
    assert decoded.frame.is_empty() and "an order book" in decoded.reasons[0]


def test_a_close_below_zero_counts_and_is_that_day_s_drop(tmp_path: Path) -> None:
    closes = {
        "2026-06-01": 14.0,
        "2026-06-02": 13.2,
        "2026-06-03": -21.5,
        "2026-06-04": -3.0,
        "2026-06-05": 11.0,
    }
    path = tmp_path / "oil.csv"
    bars = [f"{day},{close},{max(close, 15)},{min(close, -22)},{close},10" for day, close in closes.items()]
    path.write_text("\n".join(["Date,Open,High,Low,Close,Volume", *bars]) + "\n")
    result = tried(path)
    assert (result.account.counted, result.account.filtered) == (5, 0)
    assert [alert["at"][:10] for alert in result.of("session drop")] == ["2026-06-03"]


def test_a_price_of_zero_counts_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "rates.csv"
    path.write_text("Date,Close\n2026-06-01,0.25\n2026-06-02,0\n2026-06-03,-0.25\n2026-06-04,n/a\n")
    result = tried(path)
    assert (result.account.counted, result.account.filtered) == (3, 1)
    assert [alert["value"] for alert in result.of("session drop")] == [-100.0]
