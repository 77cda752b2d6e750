"""What the apps make of others' recordings: how many files and messages are right, wrong and refused.

``python -m bench.public_captures CLONE…`` prints a table for each folder, a clone that you have made under
the repository's name, of

stocks      https://github.com/bmoscon/cryptofeed, https://github.com/nautechsystems/nautilus_trader
logs        https://github.com/logpai/loghub
supernova   https://github.com/astrolabsoftware/fink-filters,
            https://github.com/astrolabsoftware/fink-alert-schemas,
            https://github.com/ZwickyTransientFacility/ztf-avro-alert

With ``--reasons`` it also prints why a file was refused, and why a message of it became a dead letter. It is
not among the benchmarks that ``python -m bench`` runs, because it needs the clones. Failed logins have a
script of their own, `bench.labelled_logs`.

What counts as wrong:

stocks      a file that was taken for another venue than its name says, or whose name says that it has no
            trades; a trade whose price is ten times its symbol's median or a tenth of it, or whose time is a
            day from when it was received, if the file says when, and otherwise before 2009 or in the future
logs        a line whose message doesn't end as loghub's table has it, or that doesn't contain the minute and
            second of its time
supernova   an alert whose place, time or magnitude can't be (Rubin's have none if the flux is below 0), or a
            file taken for the other survey

Nautilus' frames fill several lines, so each JSON file is read as one line.
"""

from __future__ import annotations

import csv
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
from rich.console import Console
from rich.table import Table

from streamgauge.apps.app import App, Feed, Message
from streamgauge.apps.jobs.job import Job
from streamgauge.apps.logs.app import APP as LOGS
from streamgauge.apps.stocks.app import APP as STOCKS
from streamgauge.apps.supernova.app import APP as SUPERNOVA
from streamgauge.operators.formats.messages import Messages
from streamgauge.operators.steps.row_steps import RowSteps

ANY_VENUE = ("csv",)
"""Formats that don't say whose trades they are."""
ALSO = {"huobi": "htx", "gateio_futures": "gate-futures", "coinbase": "coinbase-advanced"}
"""How names of files begin, and formats that they don't begin with."""
_NO_TRADES = re.compile(r"depth|deltas|book|quote", re.IGNORECASE)
_BEGAN = datetime(2009, 1, 1, tzinfo=UTC)


@dataclass
class Outcome:
    """The outcome of a file: its format or why it was refused, its rows, and those that are wrong."""

    format: str = ""
    rows: int = 0
    filtered: int = 0
    dead: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    refused: str = ""


Judge = Callable[[Path, str, list[Message], pl.DataFrame], list[str]]
"""What is wrong with the rows of a file in a format; a row's `number` is its message's."""


def outcome_of(app: App, path: Path, judge: Judge) -> Outcome:
    """What an app makes of a file, by its own recognition, decoder and steps."""
    try:
        job = Job.of(app, recording=path)
        messages = list(job.form.messages(path, job.settings))
    except (ValueError, OSError) as error:
        return Outcome(refused=str(error).replace(str(path), path.name))
    outcome = Outcome(job.form.name)
    stream = job.form.source(Feed("bench", "localhost:9092"), job.settings)
    steps = RowSteps(stream, stream.columns)
    now = int(datetime.now(UTC).timestamp() * 1000)
    batch = Messages.of(
        [message.value for message in messages],
        [message.key for message in messages],
        timestamps=[now if message.sent_ms is None else message.sent_ms for message in messages],
    )
    frames, before = [], 0
    for part, decoded in stream.reading.kafka_source.decoded(batch):
        stepped = steps.apply(decoded.frame, lambda rows, why: outcome.dead.extend([why] * len(rows)))
        numbers = np.arange(len(part)) if decoded.rows is None else decoded.rows
        frames.append(stepped.frame.with_columns(number=pl.Series(before + numbers[stepped.numbers])))
        outcome.filtered += stepped.filtered
        outcome.dead += decoded.reasons
        before += len(part)
    rows = pl.concat(frames) if frames else pl.DataFrame()
    outcome.rows = rows.height
    if rows.height:
        outcome.wrong = judge(path, job.form.name, messages, rows)
    return outcome


def wrong_trades(path: Path, form: str, messages: list[Message], rows: pl.DataFrame) -> list[str]:
    """Trades of another venue, price or time than can be."""
    venue = venue_of(path)
    alike = (
        form in ANY_VENUE
        or venue.startswith(form)
        or any(venue.startswith(name) and form == other for name, other in ALSO.items())
    )
    if not alike:
        return [f"taken for {form}"] * rows.height
    if _NO_TRADES.search(path.name):
        return ["trades in a file of something else"] * rows.height
    with_times = path.parent.name == "sample_data"
    median = pl.col("price").median().over("symbol")
    far = ~pl.col("price").is_between(median / 10, median * 10)
    wrong = [
        f"price {price} of {symbol}"
        for symbol, price in rows.filter(far).select("symbol", "price").iter_rows()
    ]
    for number, at in rows.select("number", "at").iter_rows():
        received = messages[number].sent_ms
        if with_times and received is not None:
            plausible = abs(at - datetime.fromtimestamp(received / 1000, UTC)) <= timedelta(days=1)
        else:
            plausible = at is not None and _BEGAN <= at <= datetime.now(UTC)
        if not plausible:
            wrong.append(f"time {at}")
    return wrong


def venue_of(path: Path) -> str:
    """The venue that a file of cryptofeed's or Nautilus' is named by."""
    parts = path.parts
    if path.parent.name == "sample_data":
        return path.name.split(".")[0].lower()
    if "adapters" in parts:
        return parts[parts.index("adapters") + 1]
    return parts[parts.index("test_data") + 1] if path.parent.name != "test_data" else "test_data"


def wrong_lines(path: Path, form: str, messages: list[Message], rows: pl.DataFrame) -> list[str]:
    """Lines without their message's text, or with a time that they haven't."""
    with path.with_name(f"{path.name}_structured.csv").open(encoding="utf-8", newline="") as file:
        contents = [" ".join(row["Content"].split()) for row in csv.DictReader(file)]
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    by_line = dict(zip((line.strip() for line in lines), contents, strict=True))
    wrong = []
    for number, at, message in rows.select("number", "at", "message").iter_rows():
        line = messages[number].value.decode(errors="replace").strip()
        wanted = by_line.get(line.splitlines()[0].strip(), "?")
        text = " ".join((message or "").split())
        if not text or not (text.endswith(wanted) or wanted.endswith(text)):
            wrong.append(f"message {text!r} of {line!r}")
        elif at is None or not re.search(
            rf"(?:{at:%M}|\b{at.minute})\D?(?:{at:%S}|{at.second}\b)|{at.timestamp():.0f}", line
        ):
            wrong.append(f"time {at} of {line!r}")
    return wrong


def wrong_alerts(path: Path, form: str, messages: list[Message], rows: pl.DataFrame) -> list[str]:
    """Alerts of another survey, or with a place, time or magnitude that can't be."""
    # Names of columns and schemas stand in the files as they are; only Rubin's have sources of differences.
    if (form == "rubin") != (b"diaSource" in path.read_bytes()):
        return [f"taken for {form}"] * rows.height
    possible = (
        pl.col("ra").is_between(0, 360)
        & pl.col("dec").is_between(-90, 90)
        & pl.col("mag").fill_null(20.0).is_between(5, 32)
        & pl.col("at").is_between(datetime(2017, 1, 1, tzinfo=UTC), datetime(2035, 1, 1, tzinfo=UTC))
    )
    odd = rows.filter(~possible.fill_null(False))
    return [str(row) for row in odd.select("object", "at", "ra", "dec", "mag").iter_rows()]


def trade_files(clone: Path, scratch: Path) -> Iterator[tuple[str, Path]]:
    """The files of cryptofeed's or Nautilus' clone, by venue, those of JSON as one line each."""
    captures = sorted((clone / "sample_data").glob("*"))
    if captures:
        yield from ((venue_of(path), path) for path in captures)
        return
    kinds = (".json", ".csv", ".parquet", ".gz", ".zst")
    for path in sorted(path for path in clone.rglob("*") if path.suffix in kinds):
        if not {"resources", "test_data"} & set(path.parts):
            continue
        read = path
        if path.suffix == ".json":
            try:
                frame = json.dumps(json.loads(path.read_bytes()), separators=(",", ":"))
            except ValueError:
                frame = ""
            if frame:
                read = scratch / path.relative_to(clone)
                read.parent.mkdir(parents=True, exist_ok=True)
                read.write_text(frame + "\n", encoding="utf-8")
        yield venue_of(path.relative_to(clone)), read


def line_files(clone: Path, scratch: Path) -> Iterator[tuple[str, Path]]:
    """loghub's samples of 2,000 lines."""
    yield from ((path.parent.name, path) for path in sorted(clone.glob("*/*_2k.log")))


def alert_files(clone: Path, scratch: Path) -> Iterator[tuple[str, Path]]:
    """Packets and tables of alerts, by folder."""
    for path in sorted(
        path for path in clone.rglob("*") if path.suffix in (".avro", ".parquet") and path.is_file()
    ):
        yield "/".join(path.relative_to(clone).parts[:-1]), path


Files = Callable[[Path, Path], Iterator[tuple[str, Path]]]
COLLECTIONS: dict[str, tuple[App, Files, Judge]] = {
    "cryptofeed": (STOCKS, trade_files, wrong_trades),
    "nautilus_trader": (STOCKS, trade_files, wrong_trades),
    "loghub": (LOGS, line_files, wrong_lines),
    "fink-alert-schemas": (SUPERNOVA, alert_files, wrong_alerts),
    "fink-filters": (SUPERNOVA, alert_files, wrong_alerts),
    "ztf-avro-alert": (SUPERNOVA, alert_files, wrong_alerts),
}
COLUMNS = (
    "files",
    "read",
    "no rows",
    "wrong",
    "refused",
    "rows",
    "wrong rows",
    "filtered",
    "dead letters",
    "formats",
)


def counts_of(outcome: Outcome) -> Counter[str]:
    """A file's part of the columns."""
    kind = (
        "refused" if outcome.refused else "wrong" if outcome.wrong else "read" if outcome.rows else "no rows"
    )
    numbers = {"rows": outcome.rows, "wrong rows": len(outcome.wrong), "filtered": outcome.filtered}
    return Counter({"files": 1, kind: 1, **numbers, "dead letters": len(outcome.dead)})


def table_of(clone: Path, reasons: bool) -> Table:
    """The outcome of a clone's files; wrong rows are printed, up to three for each file."""
    app, files_of, judge = COLLECTIONS[clone.name]
    by_name: dict[str, Counter[str]] = {}
    formats: dict[str, dict[str, None]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name, path in files_of(clone, Path(scratch)):
            outcome = outcome_of(app, path, judge)
            by_name.setdefault(name, Counter()).update(counts_of(outcome))
            formats.setdefault(name, {}).update({outcome.format: None} if outcome.format else {})
            for wrong in outcome.wrong[:3]:
                print(path.name, "wrong", wrong, sep=" | ")
            if reasons and (outcome.refused or outcome.dead):
                print(path.name, outcome.format or "refused", outcome.refused or outcome.dead[0], sep=" | ")
    table = Table(clone.name, *COLUMNS)
    for name, counts in by_name.items():
        table.add_row(name, *(str(counts[column]) for column in COLUMNS[:-1]), " ".join(formats[name]))
    table.add_section()
    sums = sum(by_name.values(), Counter[str]())
    table.add_row("all", *(str(sums[column]) for column in COLUMNS[:-1]))
    return table


def main(arguments: list[str]) -> int:
    """Print a table for each clone. Raises `SystemExit` for a folder that isn't one of them."""
    reasons, clones = "--reasons" in arguments, [Path(one) for one in arguments if one != "--reasons"]
    unknown = [str(clone) for clone in clones if clone.name not in COLLECTIONS or not clone.is_dir()]
    if unknown or not clones:
        raise SystemExit(f"name clones of {', '.join(COLLECTIONS)}; got {', '.join(unknown) or 'none'}")
    for clone in clones:
        Console().print(table_of(clone, reasons))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
