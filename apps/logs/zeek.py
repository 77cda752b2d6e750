"""All kinds of Zeek logs: tables with a ``#fields`` header, and JSON.

All Zeek logs have the same few columns here, each read from the corresponding field of the log; `host` is the
log's name, such as ``http``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from ...operators.definition.stream import Stream
from ...operators.formats.decode import Decoded
from ...operators.formats.messages import Messages
from ...operators.formats.text.lines import refusing, texts_of
from ..app import AppFormat, Feed, Message, Settings
from .columns import as_time, failed_status, in_columns
from .json_lines import is_object
from .lines import NOWHERE, first_lines, lines_of, mostly, timed
from .members import begun, first_of, moment, whole
from .web_requests import missing_paths, refused_requests

_FIELDS = (
    *("ts", "_path", "id.orig_h", "id.resp_p", "proto", "service", "duration", "orig_bytes", "resp_bytes"),
    *("conn_state", "query", "qtype_name", "rcode_name", "rtt", "method", "uri", "user_agent", "status_code"),
    *("status_msg", "response_body_len", "username", "user", "client", "success", "auth_success"),
    *("request_type", "error_msg", "established", "server_name", "cipher", "fuid", "mime_type", "seen_bytes"),
    *("note", "msg", "src", "name", "addl", "command", "reply_code", "mailfrom", "operation", "endpoint"),
    *("action", "client_addr"),
)
_LOGS = {
    "conn_state": "conn",
    "qtype_name": "dns",
    "query": "dns",
    "method": "http",
    "uri": "http",
    "request_type": "kerberos",
    "auth_success": "ssh",
    "cipher": "ssl",
    "server_name": "ssl",
    "fuid": "files",
    "note": "notice",
    "addl": "weird",
}
"""The names of logs that don't contain their name, by a characteristic field."""

_NO_ANSWER = ["REJ", "S0", "RSTOS0", "RSTRH", "SH", "SHR"]
_DNS_FAILED = ["SERVFAIL", "REFUSED", "FORMERR", "NOTIMP"]
_NOT_YET = "KDC_ERR_PREAUTH_REQUIRED"
"""The error with which every Kerberos login begins, which isn't a failure."""
_SHOWN = 60
_NO_LOGIN = ["KDC_ERR_PREAUTH_FAILED", "KDC_ERR_C_PRINCIPAL_UNKNOWN"]
_FALSE = ["F", "false"]


def _in_columns(rows: Stream, settings: Settings) -> Stream:
    field = {name: pl.col(name) for name in _FIELDS}
    log = pl.coalesce(
        field["_path"],
        *(pl.when(field[name].is_not_null()).then(pl.lit(log)) for name, log in _LOGS.items()),
        pl.lit("zeek"),
    )
    code = pl.coalesce(field["status_code"], field["reply_code"])
    status = pl.coalesce(code, field["rcode_name"], field["conn_state"], field["error_msg"], field["success"])
    port = pl.concat_str("proto", "id.resp_p", separator="/")
    what = ("uri", "query", "server_name", "operation", "action", "note", "name", "command", "service")
    kinds = ("method", "qtype_name", "request_type", "service", "note", "name", "command", "mime_type")
    failed = [
        failed_status(code, settings),
        field["conn_state"].is_in(_NO_ANSWER),
        field["rcode_name"].is_in(_DNS_FAILED),
        field["established"].is_in(_FALSE),
        field["auth_success"].is_in(_FALSE),
        field["success"].is_in(_FALSE) & (field["error_msg"].fill_null("") != _NOT_YET),
    ]
    refused = [
        field["auth_success"].is_in(_FALSE),
        refused_requests(field["method"], field["uri"], code),
        code == "530",
        field["error_msg"].is_in(_NO_LOGIN),
    ]
    moved = [whole(field[name]) for name in ("orig_bytes", "resp_bytes")]
    timed_rows = {"at": pl.col("at")} if "at" in rows.columns else {}
    return in_columns(
        rows,
        settings,
        **timed_rows,
        host=log,
        address=pl.coalesce("id.orig_h", "src", "client_addr"),
        user=pl.coalesce("username", "user", "client", "mailfrom"),
        operation=pl.coalesce(*what, "mime_type", port, "endpoint"),
        status=status,
        failed=pl.any_horizontal(*(one.fill_null(False) for one in failed)),
        refused=pl.any_horizontal(*(one.fill_null(False) for one in refused)),
        missing=missing_paths(field["status_code"]),
        bytes=pl.coalesce(
            whole(field["response_body_len"]),
            whole(field["seen_bytes"]),
            moved[0] + moved[1],
        ),
        seconds=pl.coalesce(field["rtt"], field["duration"]).cast(pl.Float64, strict=False),
        agent=field["user_agent"],
        message=pl.coalesce("msg", "status_msg", "error_msg", "addl"),
        term=pl.concat_str(log, pl.coalesce(*kinds, "proto"), status, ignore_nulls=True, separator=" "),
    )


@dataclass(frozen=True)
class ZeekTable:
    """A `Decoder` of records of Zeek tables, each preceded by the header lines that describe it.

    >>> text = b"#separator \\\\x09\\n#path\\tdns\\n#fields\\tts\\tquery\\n1.5\\texample.org"
    >>> found = ZeekTable().decode(Messages.of([text, b"1.5\\texample.org"]))
    >>> found.frame.select("_path", "ts", "query").rows(), found.reasons
    ([('dns', '1.5', 'example.org')], ["no #fields before it: '1.5\\\\texample.org'"])

    Source: https://docs.zeek.org/en/master/log-formats.html
    """

    @property
    def schema(self) -> dict[str, Any]:
        """The Polars types of its columns."""
        return dict.fromkeys(_FIELDS, pl.String())

    def decode(self, messages: Messages) -> Decoded:
        """Return the rows of a batch, and why the other messages were refused."""
        texts, rows, refused = texts_of(messages)
        parts = texts.str.extract_groups(r"(?s)^(?:(#.*)\n)?([^\n]*)$").struct
        # Of several lines without a header, the first is shown in the error.
        heads, lines = parts.field("1").fill_null(""), _or_else(parts.field("2"), texts)
        frames, places = [pl.DataFrame(schema=self.schema)], []
        for head in heads.unique(maintain_order=True):
            at = (heads == head).arg_true()
            frame, wrong = _records(head, lines.gather(at))
            frames.append(frame)
            places.append(at)
            refused |= {int(rows[at[place]]): reason for place, reason in wrong.items()}
        frame = pl.concat(frames)
        if places:
            frame = frame[pl.concat(places).arg_sort()]
        return refusing(frame, rows, refused)


def _or_else(lines: pl.Series, others: pl.Series) -> pl.Series:
    return lines.zip_with(lines.is_not_null(), others)


def _unescaped(mark: str) -> str:
    """Decode an escape such as ``\\x09``; an unknown one stands for itself."""
    try:
        return mark.encode().decode("unicode_escape")
    except UnicodeDecodeError:
        return mark


def _records(head: str, lines: pl.Series) -> tuple[pl.DataFrame, dict[int, str]]:
    """Return the fields of lines after a header, as text, and why other lines aren't records."""
    separator, *others = head.splitlines() or [""]
    mark = _unescaped(separator.removeprefix("#separator").strip()) or "\t"
    header = {name[1:]: rest for name, _, rest in (line.partition(mark) for line in others)}
    names = header.get("fields", "").split(mark)
    cells = lines.str.split(mark)
    columns = {name: cells.list.get(at, null_on_oob=True) for at, name in enumerate(names)}
    unset = [header.get("unset_field", "-"), header.get("empty_field", "(empty)")]
    cleaned = {name: column.set(column.is_in(unset), None) for name, column in columns.items()}
    cleaned["_path"] = pl.Series([header.get("path")] * len(lines), dtype=pl.String)
    nothing = pl.Series([None] * len(lines), dtype=pl.String)
    frame = pl.DataFrame([cleaned.get(name, nothing).alias(name) for name in _FIELDS])
    if names == [""]:
        return frame, {at: f"no #fields before it: {line[:_SHOWN]!r}" for at, line in enumerate(lines)}
    count = cells.list.len()
    return frame, {
        at: f"{count[at]} fields, where its header names {len(names)}: {lines[at][:_SHOWN]!r}"
        for at in (count != len(names)).arg_true().to_list()
    }


def _table(feed: Feed) -> Stream:
    return feed.stream(ZeekTable(), time=moment(pl.col("ts")))


def _json(feed: Feed) -> Stream:
    return begun(feed, _FIELDS, moment(first_of(["ts"])))


def _json_rows(feed: Feed, settings: Settings) -> Stream:
    rows = _json(feed)
    assert rows.time is not None
    at = as_time(rows.time, rows.columns)
    return _in_columns(rows.select(**{name: first_of([name]) for name in _FIELDS}, at=at), settings)


def _table_messages(path: Path, settings: Settings) -> Iterator[Message]:
    yield from timed(_table(NOWHERE), _with_heads(path))


def _with_heads(path: Path) -> Iterator[bytes]:
    """Yield each record with the lines of the last header before it."""
    head: list[bytes] = []
    for line in lines_of(path):
        if not line.startswith(b"#"):
            yield b"\n".join([*head, line])
        elif line.startswith(b"#separator"):
            head = [line]
        elif not line.startswith((b"#open", b"#close", b"#types", b"#set_separator")):
            head.append(line)


def _is_zeek(line: bytes) -> bool:
    marks = (b'"uid', b'"id.orig_h"', b'"fuid"', b'"conn_uids"', b'"peer"')
    return is_object(line) and b'"ts"' in line and any(mark in line for mark in marks)


ZEEK = AppFormat(
    "zeek",
    "Zeek's tables with their #fields header, a record a message with the header before it",
    lambda feed, settings: _in_columns(_table(feed), settings),
    lambda path, head: b"\n#fields" in b"\n" + b"\n".join(first_lines(head)),
    _table_messages,
)

ZEEK_JSON = AppFormat(
    "zeek-json",
    "Zeek's logs in JSON, an object a message",
    _json_rows,
    lambda path, head: mostly(first_lines(head), _is_zeek),
    lambda path, settings: timed(_json(NOWHERE), lines_of(path)),
)
