"""Lines of several programs in one topic or file, each read by the format that its shape indicates.

Lines of a container runtime are unpacked first: the runtime adds the time, the program wrote the rest. A line
that its format can't read is refused, and so is a line with no known shape.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ...operators.definition.event_time import in_utc
from ...operators.definition.filling import FillForward
from ...operators.definition.stream import Stream
from ...operators.formats.decode import Decoded
from ...operators.formats.messages import Messages
from ...operators.formats.reasons import Reason
from ...operators.formats.text.iso_times import read_times
from ...operators.formats.text.lines import refusing, texts_of
from ..app import AppFormat, Feed, Message, Settings
from .access import ACCESS
from .auditd import AUDITD
from .cef import CEF
from .cloudtrail import CLOUDTRAIL
from .columns import COLUMNS, failed_level, failed_text, of_connections, template
from .event_json import EVE, KUBERNETES_AUDIT, WINDOWS
from .haproxy import HAPROXY
from .haproxy import PATTERN as HAPROXY_LINE
from .json_lines import JSON_LINES
from .layouts import LAYOUTS, UNSURE
from .lines import NOWHERE, first_lines
from .logins import find_logins
from .syslog import SYSLOG
from .text_lines import TEXT_LINES
from .w3c import W3C
from .years import YEAR, timed_by_year
from .zeek import ZEEK_JSON

USUAL = {"zone": "UTC", **YEAR, "errors": "500", "challenges": "yes", "terms": "", "probes": "yes"}
_UTC = pl.Datetime("us", "UTC")
_SHOWN = 60

_DOCKER = r'^\{"log":"(?:[^"\\]|\\.)*","stream":"(?:stdout|stderr)".*"time":"[^"]+"\}\s*$'
_CRI = (
    r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)) (?:stdout|stderr) ([FP])(?::\S*)? ?(.*)$"
)
_IN_SYSLOG = (
    r"^(?:<\d{1,3}>)?(?:[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\S+) (?:\S+ )?"
    r"(?:nginx|apache2?|httpd|traefik|caddy)(?:\[\d+\])?: (?P<line>.*)$"
)
_CLF = r"^(?:\S+ )?\S+ \S+ \S+(?: \S+)* \[\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\] \""

SHAPES: tuple[tuple[str, AppFormat], ...] = (
    (r'^\s*\{.*"audit\.k8s\.io/', KUBERNETES_AUDIT),
    (r'^\s*\{.*"event_type":.*"src_ip":|^\s*\{.*"src_ip":.*"event_type":', EVE),
    (r'^\s*\{.*"winlog":|^\s*\{.*"EventID":', WINDOWS),
    (r'^\s*\{.*"eventSource":.*"eventName":|^\s*\{.*"eventName":.*"eventSource":', CLOUDTRAIL),
    (r'^\s*\{.*"id\.orig_h":', ZEEK_JSON),
    (r"^\s*\{", JSON_LINES),
    (r"^(?:[^|]{0,120}[ >])?(?:CEF|LEEF): ?\d", CEF),
    (r"\btype=\w+(?:\[\d+\])? (?:msg=)?audit\(\d", AUDITD),
    (HAPROXY_LINE, HAPROXY),
    (_CLF, ACCESS),
    (r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [0-9A-Fa-f.:]+ [A-Z]+ /\S* ", W3C),
)
"""The shapes of formats' lines; the first match wins. Other lines are syslog or a program's layout."""

_PARTIAL = "a part of a longer line (CRI's P): let the shipper join them"
_NAMED = (
    (r'^\s*\{.*"resourceLogs"', "a batch of OpenTelemetry's: run it by --format otlp"),
    (r"^\s*(?:- )?<Event[ >]", "Windows' event in XML: let the shipper send JSON"),
    (r"^#", "a header, not a record"),
)
"""Known shapes that are not supported, with what to do."""


@dataclass(frozen=True)
class LinesByShape:
    """A `Decoder` of lines with any of `SHAPES`, of syslog, and of programs' layouts, including containers'
    lines.

    >>> lines = [
    ...     b'{"log":"10.0.0.9:4 [06/Feb/2026:12:14:14.6] in b/s 1/0/3/6/9 200 2 - - -- 1/1/1/1/0 0/0\\\\n",'
    ...     b'"stream":"stdout","time":"2026-02-06T12:14:15.1Z"}',
    ...     b"2026-02-06T12:14:16.5Z stderr F Failed password for root from 192.0.2.7 port 22 ssh2",
    ...     b"2026-02-06T12:14:16.5Z stderr P a part",
    ... ]
    >>> found = LinesByShape().decode(Messages.of(lines))
    >>> found.frame.select("address", "status", "refused").rows()
    [('10.0.0.9', '200', 0), ('192.0.2.7', None, 1)]
    >>> found.reasons
    ["a part of a longer line (CRI's P): let the shipper join them: 'a part'"]
    """

    zone: str = "UTC"
    settings: tuple[tuple[str, str], ...] = ()
    version: int = 1

    @property
    def schema(self) -> dict[str, Any]:
        """The Polars types of its columns."""
        answers = dict.fromkeys(("challenged", "accepted"), pl.Int64())
        return {"time": _UTC, **COLUMNS, **answers}

    def decode(self, messages: Messages) -> Decoded:
        """Return the rows of a batch, and why the other messages were refused."""
        texts, rows, refused = texts_of(messages)
        packed = _unpacked(texts)
        texts, contained = packed["text"], packed["time"].is_not_null()
        every = pl.Series([True] * len(texts), dtype=pl.Boolean)
        settings = {**dict(self.settings), "zone": self.zone}
        lines = _Lines(_without_head(texts), messages.timestamp[rows], settings, self.schema)
        lines.refuse(packed["partial"], _PARTIAL)
        for pattern, what in _NAMED:
            lines.refuse(texts.str.contains(pattern), what)
        for pattern, form in SHAPES:
            # Ambiguous lines belong to another format if this one doesn't fit; a runtime adds missing times.
            sure = ~contained if form not in (W3C, HAPROXY) else ~every
            lines.read(form, lines.texts.str.contains(f"(?s){pattern}"), sure)
        lines.parts.append(_bare(lines.texts, packed, lines.take(contained & ~_is_timed(texts)), self.schema))
        for form, here in ((TEXT_LINES, _is_of_layout(texts)), (SYSLOG, every), (TEXT_LINES, every)):
            lines.read(form, here, ~every)
        lines.parts.append(_bare(lines.texts, packed, lines.take(contained), self.schema))
        lines.refuse(every, "a line of no shape")
        refused |= {int(rows[at]): reason for at, reason in lines.refused.items()}
        frame = pl.concat([part for part in lines.parts if part.height] or lines.parts[:1]).sort("row")
        numbers = pl.DataFrame({"row": pl.int_range(len(texts), dtype=pl.UInt32, eager=True)})
        whole = numbers.join(frame, on="row", how="left", maintain_order="left").drop("row")
        # The runtime's time has a zone; a program's may not.
        time = packed["time"].zip_with(contained, whole["time"])
        return refusing(whole.with_columns(time=time, at=time), rows, refused)


@dataclass
class _Lines:
    """The lines of a batch: unread lines, `left`, and the rows and refusals of the others."""

    texts: pl.Series
    stamps: np.ndarray
    settings: Mapping[str, str]
    schema: Mapping[str, Any]
    parts: list[pl.DataFrame] = field(default_factory=list)
    refused: dict[int, str] = field(default_factory=dict)
    left: pl.Series = field(init=False)

    def __post_init__(self) -> None:
        self.left = self.texts.is_not_null()

    def take(self, here: pl.Series) -> pl.Series:
        """Return which of some lines are unread, and mark them as read."""
        taken = self.left & here.fill_null(False)
        self.left &= ~taken
        return taken

    def refuse(self, here: pl.Series, what: str) -> None:
        """Refuse the unread lines among some lines."""
        for at in self.take(here).arg_true().to_list():
            self.refused[at] = Reason(what, f"{what}: {self.texts[at][:_SHOWN]!r}")

    def read(self, form: AppFormat, here: pl.Series, sure: pl.Series) -> None:
        """Read unread lines among some lines by a format; of unreadable ones, only `sure` ones are
        refused."""
        at = (self.left & here.fill_null(False)).arg_true().to_numpy()
        if not len(at):
            return
        part, reasons = _read(form, self.settings, self.texts, at, self.stamps, self.schema)
        self.parts.append(part)
        ended = {number: reason for number, reason in reasons.items() if sure[number]}
        self.refused |= ended
        gone = np.isin(np.arange(len(self.texts)), [*part["row"].to_list(), *ended])
        self.left &= ~pl.Series(gone)


def _unpacked(texts: pl.Series) -> pl.DataFrame:
    """Return lines as programs wrote them, the runtime's times, and which lines are partial."""
    docker = texts.str.contains(f"(?s){_DOCKER}")
    of_docker = texts.set(~docker, None)
    log = of_docker.str.json_path_match("$.log").str.strip_chars_end("\r\n")
    cri = texts.str.extract_groups(f"(?s){_CRI}").struct
    of_cri = cri.field("1").is_not_null()
    stamp = of_docker.str.json_path_match("$.time").zip_with(docker, cri.field("1"))
    text = log.zip_with(docker, cri.field("3").zip_with(of_cri, texts))
    partial = (cri.field("2") == "P").fill_null(False)
    return pl.DataFrame({"text": text, "time": read_times(stamp), "partial": partial})


def _without_head(texts: pl.Series) -> pl.Series:
    """Remove the syslog header before web servers' lines; return other lines unchanged."""
    inner = texts.str.extract(f"(?s){_IN_SYSLOG}")
    of_server = inner.is_not_null() & inner.str.contains(rf"{_CLF}|^\s*\{{")
    return inner.zip_with(of_server.fill_null(False), texts)


def _is_timed(texts: pl.Series) -> pl.Series:
    """Whether lines begin with a possible time."""
    return texts.str.contains(r"^[<\[]?\d|^\[?[A-Z][a-z]{2} |^@[0-9a-f]{24} ")


def _is_of_layout(texts: pl.Series) -> pl.Series:
    """Whether lines that syslog could read as well certainly have a program's layout."""
    both = texts.str.contains(r"^\d{4}-\d\d-\d\dT").fill_null(False)
    if not both.any():
        return both
    sure = [texts.str.contains(one.expression) for one in LAYOUTS if one not in UNSURE]
    return both & functools.reduce(operator.or_, sure).fill_null(False)


@lru_cache(maxsize=64)
def _stream(name: str, settings: tuple[tuple[str, str], ...]) -> Stream:
    form = next(one for one in (*(form for _, form in SHAPES), SYSLOG, TEXT_LINES) if one.name == name)
    return form.source(NOWHERE, {**form.settings, **USUAL, **dict(settings)})


def _read(
    form: AppFormat,
    settings: Mapping[str, str],
    texts: pl.Series,
    at: np.ndarray,
    stamps: np.ndarray,
    schema: Mapping[str, Any],
) -> tuple[pl.DataFrame, dict[int, str]]:
    """Read lines by a format; return the rows, and why other lines are refused."""
    stream = _stream(form.name, tuple(sorted(settings.items())))
    values = [text.encode() for text in texts.gather(at)]
    decoded = stream.reading.kafka_source.value.decode(Messages.of(values, timestamps=stamps[at].tolist()))
    places = at if decoded.rows is None else at[decoded.rows]
    frame = decoded.frame.with_columns(__row=pl.Series(places, dtype=pl.UInt32))
    assert stream.time is not None
    time = in_utc(frame.select(stream.time).to_series()).cast(_UTC)
    lazy = frame.with_columns(__time=time).lazy()
    for step in stream.steps:
        # Rows of a connection are processed when all are there (`of_connections`).
        if isinstance(step, FillForward):
            break
        lazy = step.apply(lazy, ("__row", "__time"))
    result = lazy.collect()
    nothing = [
        pl.lit(None, kind).alias(n) for n, kind in schema.items() if n not in (*result.columns, "time")
    ]
    result = result.with_columns(*nothing, time=pl.col("__time")).select(
        pl.col("__row").alias("row"), *(pl.col(name).cast(kind) for name, kind in schema.items())
    )
    known = result.filter(pl.col("time").is_not_null())
    gone = {int(at[n]): reason for n, reason in zip(decoded.refused.tolist(), decoded.reasons)}
    lost = set(result["row"].to_list()) - set(known["row"].to_list())
    gone |= {number: Reason("no time", f"no time in {texts[number][:_SHOWN]!r}") for number in lost}
    return known, gone


def _bare(texts: pl.Series, packed: pl.DataFrame, here: pl.Series, schema: Mapping[str, Any]) -> pl.DataFrame:
    """Read containers' lines without a time of their own: their level, message, and logins."""
    at = here.fill_null(False).arg_true()
    text = texts.gather(at)
    logins = find_logins(pl.repeat("", len(text), dtype=pl.String, eager=True), text)
    frame = pl.DataFrame(
        {"row": at.cast(pl.UInt32), "message": text, "time": packed["time"].gather(at)}
    ).hstack(logins)
    level = pl.col("message").str.extract(
        r"(?i)^\W{0,2}(trace|debug|info|notice|warn(?:ing)?|error|err|fatal|crit(?:ical)?|panic)\b"
    )
    level = pl.coalesce(
        pl.col("message").str.extract(r'\b(?:level|lvl|severity)="?(\w+)'), level
    ).str.to_lowercase()
    given = {
        "row": pl.col("row"),
        "time": pl.col("time"),
        "at": pl.col("time"),
        "message": pl.col("message"),
        "status": level,
        "failed": pl.coalesce(failed_level(level), failed_text(pl.col("message"))),
        "address": pl.col("login_address"),
        "user": pl.col("login_user"),
        "sign": pl.col("login_sign"),
        "refused": pl.col("login_times").fill_null(0),
        "missing": pl.lit(0),
        "term": template(pl.col("message")),
    }
    columns = {name: given.get(name, pl.lit(None)).cast(kind) for name, kind in schema.items()}
    return frame.select(row=given["row"], **columns)


def _begun(feed: Feed, settings: Settings) -> Stream:
    own = tuple(
        sorted((name, settings[name]) for name in USUAL if name in settings and name not in ("zone", "year"))
    )
    return feed.stream(LinesByShape(settings["zone"], own), time="time")


def _rows(feed: Feed, settings: Settings) -> Stream:
    return of_connections(_begun(feed, settings), settings)


def _messages(path: Path, settings: Settings) -> Iterator[Message]:
    return timed_by_year(_begun(NOWHERE, settings), path, settings)


def _recognises(path: Path, head: bytes) -> bool:
    """Whether most lines come from containers."""
    lines = first_lines(head)
    texts = pl.Series([line.decode(errors="replace") for line in lines], dtype=pl.String)
    packed = _unpacked(texts) if len(texts) else None
    return packed is not None and 2 * packed["time"].drop_nulls().len() > len(lines)


LINES = AppFormat(
    "lines",
    "lines of several programs, each by its shape: all line formats of this list, also out of Docker or CRI",
    _rows,
    _recognises,
    _messages,
    {"zone": "UTC", **YEAR, "challenges": "yes"},
)
