"""OpenTelemetry's logs as JSON: each message is a batch of records, by resources and scopes.

A message counts in the window of its first record, because batches cover a few seconds. In recordings,
batches that extend into another minute are split there, so that results are exact.
"""

from __future__ import annotations

import json as plain_json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from ...operators.definition.stream import Stream
from ...operators.formats.decode import Decoded
from ...operators.formats.json.decoder import Json, json
from ...operators.formats.messages import Messages
from ..app import AppFormat, Feed, Message, Settings
from .columns import failed_status, in_columns, template
from .lines import NOWHERE, first_lines, lines_of, mostly, timed
from .logins import LOGIN_COLUMNS, find_logins
from .members import whole
from .web_requests import missing_paths, refused_requests

_UTC = pl.Datetime("us", "UTC")
_ATTRIBUTES = pl.List(pl.Struct({"key": pl.String, "value": pl.Binary}))
_RECORD = pl.Struct(
    {
        **dict.fromkeys(("timeUnixNano", "observedTimeUnixNano", "severityNumber"), pl.Binary),
        "severityText": pl.String,
        "body": pl.Binary,
        "attributes": _ATTRIBUTES,
    }
)
_SCOPES = pl.List(pl.Struct({"logRecords": pl.List(_RECORD)}))
_BATCH = {
    "resourceLogs": pl.List(
        pl.Struct({"resource": pl.Struct({"attributes": _ATTRIBUTES}), "scopeLogs": _SCOPES})
    )
}

_LEVELS = ("trace", "debug", "info", "warn", "error", "fatal")
"""The names of levels, with four numbers each, from 1 on."""
_ERROR = 17

_OF_RESOURCE = {"host": ("service.name", "host.name", "k8s.pod.name")}
_OF_RECORD = {
    "address": ("client.address", "client.ip", "net.peer.ip", "source.address", "http.client_ip"),
    "user": ("user.name", "user.id", "enduser.id"),
    "operation": ("http.route", "url.path", "http.target", "rpc.method", "event.name", "code.function"),
    "code": ("http.response.status_code", "http.status_code"),
    "method": ("http.request.method", "http.method"),
    "bytes": ("http.response.body.size", "http.response_content_length"),
    "seconds": ("http.server.request.duration", "duration", "duration_s"),
    "agent": ("user_agent.original", "http.user_agent"),
}
"""The attributes to read, by OpenTelemetry's current and earlier semantic conventions."""

_TEXTS = (*_OF_RESOURCE, *_OF_RECORD, "level", "message")


@dataclass(frozen=True)
class OtlpLogs:
    """A `Decoder` of batches of OpenTelemetry's log records, as lists of them.

    Source: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
    """

    @property
    def schema(self) -> dict[str, Any]:
        """The first record's time, and the records."""
        record = {**dict.fromkeys(_TEXTS, pl.String()), "at": _UTC, **LOGIN_COLUMNS}
        return {"time": _UTC, "records": pl.List(pl.Struct(record))}

    @cached_property
    def _json(self) -> Json:
        return json(_BATCH)

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def definition(self) -> dict[str, Any]:
        """Return an empty definition, because the columns describe it."""
        return {}

    def decode(self, messages: Messages) -> Decoded:
        """Return the rows of a batch, and why the other messages were refused."""
        decoded = self._json.decode(messages)
        rows = decoded.frame.lazy().with_row_index("row").explode("resourceLogs")
        rows = rows.with_columns(pl.col("resourceLogs").struct.unnest()).explode("scopeLogs")
        rows = rows.with_columns(pl.col("scopeLogs").struct.unnest()).explode("logRecords")
        records = rows.filter(pl.col("logRecords").is_not_null()).select(
            "row", pl.col("logRecords").struct.unnest(), of=pl.col("resource").struct.field("attributes")
        )
        nanos = [_number(pl.col(name)) for name in ("timeUnixNano", "observedTimeUnixNano")]
        time = pl.coalesce(*(pl.when(number > 0).then(number) for number in nanos)) // 1_000
        severity = _number(pl.col("severityNumber"))
        text = {name: _attribute("of", keys) for name, keys in _OF_RESOURCE.items()}
        text |= {name: _attribute("attributes", keys) for name, keys in _OF_RECORD.items()}
        levels = {number: _LEVELS[(number - 1) // 4] for number in range(1, 4 * len(_LEVELS) + 1)}
        text["level"] = pl.coalesce(
            severity.replace_strict(levels, default=None, return_dtype=pl.String),
            pl.col("severityText").str.to_lowercase(),
        )
        text["message"] = _value(pl.col("body"))
        read = records.select("row", at=time.cast(_UTC), **text).collect()
        logins = find_logins(pl.repeat("-", read.height, dtype=pl.String, eager=True), read["message"])
        lists = read.hstack(logins).group_by("row", maintain_order=True)
        whole_ones = lists.agg(time=pl.col("at").min(), records=pl.struct(*_TEXTS, "at", *LOGIN_COLUMNS))
        numbers = pl.DataFrame({"row": pl.int_range(decoded.frame.height, dtype=pl.UInt32, eager=True)})
        frame = numbers.join(whole_ones, on="row", how="left", maintain_order="left").select(*self.schema)
        return replace(decoded, frame=frame)


def _number(column: pl.Expr) -> pl.Expr:
    """Convert an integer, which may be written as a string."""
    return column.cast(pl.String).str.strip_chars('"').cast(pl.Int64, strict=False)


def _value(column: pl.Expr) -> pl.Expr:
    """Return the text of a typed value, as JSON for a list or a map."""
    text = column.cast(pl.String)
    kinds = ("stringValue", "intValue", "doubleValue", "boolValue", "kvlistValue", "arrayValue", "bytesValue")
    return pl.coalesce(*(text.str.json_path_match(f"$.{kind}") for kind in kinds))


def _attribute(column: str, keys: tuple[str, ...]) -> pl.Expr:
    key, value = (pl.element().struct.field(name) for name in ("key", "value"))
    candidates = [pl.col(column).list.eval(value.filter(key == one)).list.first() for one in keys]
    return _value(pl.coalesce(*candidates))


def _begun(feed: Feed) -> Stream:
    return feed.stream(OtlpLogs(), time="time")


def _rows(feed: Feed, settings: Settings) -> Stream:
    rows = _begun(feed).explode("records").filter(pl.col("records").is_not_null())
    rows = rows.select(pl.col("records").struct.unnest())
    code, level, message = pl.col("code"), pl.col("level"), pl.col("message")
    turned_away = refused_requests(pl.col("method"), pl.col("operation"), code)
    failed = failed_status(code, settings).fill_null(False) | level.is_in(["error", "fatal"]).fill_null(False)
    return in_columns(
        rows,
        settings,
        host=pl.col("host"),
        address=pl.coalesce("address", "login_address"),
        user=pl.coalesce("user", "login_user"),
        sign=pl.col("login_sign"),
        at=pl.col("at"),
        operation=pl.col("operation"),
        status=pl.coalesce(code, level),
        failed=failed,
        refused=pl.when(turned_away).then(1).otherwise(pl.col("login_times")),
        missing=missing_paths(code),
        bytes=whole(pl.col("bytes")),
        seconds=pl.col("seconds").cast(pl.Float64, strict=False),
        agent=pl.col("agent"),
        message=message,
        term=pl.concat_str("host", level, template(message), ignore_nulls=True, separator=" "),
    )


def _messages(path: Path, settings: Settings) -> Iterator[Message]:
    yield from timed(_begun(NOWHERE), (part for line in lines_of(path) for part in _cut(line)))


def _cut(line: bytes) -> Iterator[bytes]:
    """Yield a batch, split at the end of a minute; an unreadable one is passed on unchanged."""
    try:
        records = [
            (record, scope, resource)
            for resource in plain_json.loads(line)["resourceLogs"]
            for scope in resource.get("scopeLogs") or ()
            for record in scope.get("logRecords") or ()
        ]
        minutes = [_minute(record) for record, _, _ in records]
    except (ValueError, TypeError, KeyError, AttributeError):
        yield line
        return
    if len(set(minutes)) < 2:
        yield line
        return
    for minute in dict.fromkeys(minutes):
        parts = [
            {**resource, "scopeLogs": [{**scope, "logRecords": [record]}]}
            for (record, scope, resource), own in zip(records, minutes)
            if own == minute
        ]
        yield plain_json.dumps({"resourceLogs": parts}, ensure_ascii=False).encode()


def _minute(record: dict[str, Any]) -> int:
    time = int(record.get("timeUnixNano") or 0) or int(record.get("observedTimeUnixNano") or 0)
    return time // 60_000_000_000


OTLP = AppFormat(
    "otlp",
    "OpenTelemetry's logs as JSON, a batch of records a message",
    _rows,
    lambda path, head: mostly(first_lines(head), lambda line: b'"resourceLogs"' in line),
    _messages,
)
