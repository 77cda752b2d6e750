"""Bars and trades in CSV, whose columns the header names; see `headers` and `moments` for the forms.

A message is a record with the header on the line before it. If the header has no symbol, the file's name is
the symbol.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from ....operators.definition.stream import Stream
from ....operators.formats.decode import Decoded
from ....operators.formats.messages import Messages
from ....operators.formats.text.lines import refusing, texts_of
from ...app import AppFormat, Feed, Message, Settings
from ...recordings.compressed_files import as_text
from ...recordings.csv_records import csv_records
from ..instruments.instrument_names import TABLES
from .headers import BINANCE, cells, header_of, mark_of, places
from .moments import moment
from .trades import DAY, TIME, as_trades

_NUMBERS = ("price", "open", "high", "low", "size", "adjusted", "split")
_NOTHING = {"", "null", "nan", "none", "n/a", "na", "-"}
_SIDES = {"buy": "buy", "b": "buy", "bid": "buy", "sell": "sell", "s": "sell", "ask": "sell"}
_MAKER = {"true": "sell", "1": "sell", "false": "buy", "0": "buy"}


@dataclass(frozen=True)
class PriceTable:
    """Decodes records that follow their header.

    `header` is for messages without one, `symbol` for records without one, `zone` for times without one;
    `pattern` is a form of times in addition to the known ones.

    >>> table = PriceTable()
    >>> values = [b"Date,Close\\n03-Jan-2000,9.5", b"Date,Close\\nsoon,9", b"9.5"]
    >>> found = table.decode(Messages.of(values))
    >>> found.frame.row(0, named=True)["price"], found.reasons[0]
    (9.5, "'soon' is not a time of a known form; write --set pattern=, as in %d/%m/%Y")
    """

    header: str = ""
    symbol: str = ""
    pattern: str = ""
    zone: str = "UTC"
    schema: ClassVar[dict[str, Any]] = {
        "at": TIME,
        "symbol": pl.String(),
        "kind": pl.String(),
        **dict.fromkeys(_NUMBERS, pl.Float64()),
        "side": pl.String(),
        "venue": pl.String(),
        "seq": pl.Int64(),
        "span": pl.Int64(),
    }

    def decode(self, messages: Messages) -> Decoded:
        """See `Decoder`."""
        texts, numbers, refused = texts_of(messages)
        rows: list[dict[str, Any] | None] = []
        for number, text in zip(numbers.tolist(), texts.to_list()):
            try:
                rows.append(self._row(text))
            except ValueError as error:
                refused[number] = str(error)
                rows.append(None)
        columns = {name: [None if row is None else row[name] for row in rows] for name in self.schema}
        columns["at"] = pl.Series(columns["at"], dtype=pl.Int64).cast(TIME)  # type: ignore[assignment]
        return refusing(pl.DataFrame(columns, schema=self.schema), numbers, refused)

    def _row(self, text: str) -> dict[str, Any]:
        header, _, line = text.partition("\n")
        if not line:
            if not self.header:
                raise ValueError("a record without a header; write it on the line before, or --set header=…")
            header, line = self.header, header
        header = header.lstrip("\ufeff").rstrip("\r")
        columns, record = places(header), cells(line, header)
        if max(columns.values()) >= len(record):
            raise ValueError(f"{len(record)} fields, fewer than the header's")

        def cell(what: str) -> str | None:
            given = record[columns[what]].strip() if what in columns else ""
            return None if given.lower() in _NOTHING else given

        at = cell("at")
        if at is not None and (clock := cell("clock")):
            at = f"{at} {clock}"
        when = moment(at, self.pattern, self.zone) if at is not None else None
        if when is None:
            raise ValueError(f"{at!r} is not a time of a known form; write --set pattern=, as in %d/%m/%Y")
        is_trade = bool({"side", "maker", "seq"} & columns.keys()) and "high" not in columns
        maker, side, seq = cell("maker"), cell("side"), cell("seq")
        return {
            "at": when[0],
            "symbol": cell("symbol") or self.symbol or None,
            "kind": "trades" if is_trade else "bars",
            **{name: _number(name, cell(name)) for name in _NUMBERS},
            "side": _MAKER.get(maker.lower()) if maker else _SIDES.get((side or "").lower()),
            "venue": cell("venue") or ("Binance" if header in BINANCE else None),
            "seq": int(seq) if seq and seq.isdecimal() else None,
            "span": 0 if is_trade else DAY if when[1] else 60,
        }


def _number(what: str, given: str | None) -> float | None:
    if given is None:
        return None
    try:
        return float(given.replace(",", "").lstrip("$€£"))
    except ValueError:
        raise ValueError(f"{what} is {given!r}, not a number") from None


def rows(feed: Feed, settings: Settings) -> Stream:
    """Read the bars or trades of a topic."""
    table = PriceTable(settings["header"], settings["symbol"], settings["pattern"], settings["time_zone"])
    stream = feed.stream(table, time="at", message={"arrived": "offset"})
    given = {name: pl.col(name) for name in table.schema}
    named = {**given, "symbol": pl.col("symbol").fill_null("?")}
    return as_trades(stream, settings, TABLES, negative=True, **named)


def messages(path: Path, settings: Settings) -> Iterator[Message]:
    """Read the records of a file in the order of their times, each after its header.

    Many files are sorted by symbol, or newest first.
    """
    with as_text(path) as file:
        first = next((line for line in file if line.strip()), "")
        file_records = csv_records(chain([first], file), mark_of(first), skipinitialspace=True)
        lines = [record for record in file_records if record.strip()]
    header = header_of(lines[0]) if lines else None
    if header is None:
        for line in lines:
            yield Message(line.encode(errors="surrogateescape"))
        return
    records = lines[1:] if header == lines[0] else lines
    at = 0
    timed: list[tuple[int, str]] = []
    for line in records:
        at = _time(line, header, settings, at)
        timed.append((at, line))
    symbol = (
        "" if "symbol" in places(header) else settings["symbol"] or Path(path.name.removesuffix(".gz")).stem
    )
    for at, line in sorted(timed, key=lambda one: one[0]):
        if symbol:
            mark = mark_of(header)
            quoted = StringIO()
            csv.writer(quoted, delimiter=mark, lineterminator="").writerow([symbol])
            value = f"symbol{mark}{header}\n{quoted.getvalue()}{mark}{line}"
            key = symbol
        else:
            value, key = f"{header}\n{line}", _symbol(line, header)
        yield Message(value.encode(errors="surrogateescape"), key.encode(), at // 1000)


def _time(line: str, header: str, settings: Settings, before: int) -> int:
    """Return a record's time, or the previous record's if it has none."""
    columns, record = places(header), cells(line, header)
    if max(columns.values()) >= len(record):
        return before
    clock = f" {record[columns['clock']]}" if "clock" in columns else ""
    when = moment(record[columns["at"]] + clock, settings["pattern"], settings["time_zone"])
    return before if when is None else when[0]


def _symbol(line: str, header: str) -> str:
    record = cells(line, header)
    place = places(header)["symbol"]
    return record[place] if place < len(record) else ""


def _recognises(path: Path, head: bytes) -> bool:
    first = head.decode("utf-8-sig", errors="replace").lstrip().split("\n")[0].rstrip("\r")
    return first[:1] not in ("{", "[", "") and header_of(first) is not None


TABLE = AppFormat(
    "csv",
    "daily or minute bars, or trades, in CSV with a header",
    rows,
    _recognises,
    messages,
    {"header": "", "symbol": "", "pattern": "", "time_zone": "UTC"},
)
