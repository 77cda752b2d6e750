"""Web servers' access logs as columns: Apache's common and combined formats, nginx's, Traefik's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ..decode import Decoded
from ..messages import Messages
from ..reasons import Reason
from .lines import refusing, texts_of

_QUOTED = r'"((?:[^"\\]|\\.)*)"'
_LINE = (
    r"^(\S+) \S+ (\S+) \[([^\]]+)\] "
    + _QUOTED
    + r" (\d{3}|-) (\d{1,18}|-)"
    + rf"(?: {_QUOTED} {_QUOTED})?"
    + rf"(?: (\d{{1,9}}(?:\.\d{{1,9}})?)| \d+ {_QUOTED} {_QUOTED} (\d{{1,9}})ms"
    + r"| \d+ (\d{1,9}\.\d{1,9}) \[[^\]]*\] \[[^\]]*\] \S.*)?\s*$"
)
_REQUEST = r"^(\S+) (\S+)(?: (\S+))?$"
_SHOWN = 60


def access_log() -> AccessLog:
    """A decoder of a web server's access log, one line per message.

    It reads Apache's *common* and *combined* formats, nginx's *combined*, each also with the duration of the
    request in seconds at the end (nginx's ``$request_time``), Traefik's and ingress-nginx's, which have
    further fields. Columns are `time`, `address`, `user`, `method`, `path` (without the query), `query`,
    `protocol`, `status`, `bytes`, `referrer`, `agent` and `seconds`; fields that are ``-`` or missing are
    null. A request that isn't HTTP, as port scanners send, is a row whose `method`, `path`, `query` and
    `protocol` are null. Backslashes in quoted fields stay as the server wrote them.

    Lines of another form, or without a valid time, are refused. For other formats use `text` with your own
    expression. Use ``time="time"`` in a stream to use the requests' times.

    >>> import streamgauge as sg
    >>> line = b'::1 - ann [17/May/2015:10:05:03 +0200] "GET /a?b=1 HTTP/1.1" 200 17 "-" "curl/8" 0.25'
    >>> found = sg.access_log().decode(sg.formats.Messages.of([line, b"restarted"]))
    >>> found.frame.select("address", "user", "path", "query", "status", "agent", "seconds").rows()
    [('::1', 'ann', '/a', 'b=1', 200, 'curl/8', 0.25)]
    >>> found.frame["time"][0].isoformat(), found.reasons
    ('2015-05-17T08:05:03+00:00', ["not a line of an access log: 'restarted'"])

    Source: https://httpd.apache.org/docs/2.4/mod/mod_log_config.html#formats
    """
    return AccessLog()


@dataclass(frozen=True)
class AccessLog:
    """A `Decoder` of access logs, created by `access_log`."""

    @property
    def schema(self) -> dict[str, Any]:
        """The Polars types of its columns."""
        texts = ("address", "user", "method", "path", "query", "protocol")
        return {
            "time": pl.Datetime("us", "UTC"),
            **dict.fromkeys(texts, pl.String()),
            "status": pl.Int16(),
            "bytes": pl.Int64(),
            **dict.fromkeys(("referrer", "agent"), pl.String()),
            "seconds": pl.Float64(),
        }

    def decode(self, messages: Messages) -> Decoded:
        """The rows of a batch, and why the other messages were refused."""
        texts, rows, refused = texts_of(messages)
        groups = texts.str.extract_groups(_LINE).struct
        parts = {name: groups.field(str(at)) for at, name in enumerate(_GROUPS, 1)}
        time = parts["time"].str.to_datetime("%d/%b/%Y:%H:%M:%S %z", time_unit="us", strict=False)
        request = parts["request"].str.extract_groups(_REQUEST).struct
        target = request.field("2").str.splitn("?", 2).struct
        columns = {
            **parts,
            "time": time.dt.convert_time_zone("UTC"),
            "method": request.field("1"),
            "path": target.field("field_0"),
            "query": target.field("field_1"),
            "protocol": request.field("3"),
            "seconds": _either(
                _either(parts["seconds"], parts["ingress"]).cast(pl.Float64),
                parts["milliseconds"].cast(pl.Float64) / 1000,
            ),
        }
        frame = pl.DataFrame(
            [_without_dash(columns[name]).cast(kind).alias(name) for name, kind in self.schema.items()]
        )
        for at in np.flatnonzero(time.is_null().to_numpy()).tolist():
            given = parts["time"][at]
            if given is None:
                line = "not a line of an access log"
                refused[int(rows[at])] = Reason(line, f"{line}: {texts[at][:_SHOWN]!r}")
            else:
                refused[int(rows[at])] = Reason('"time" is not a time', f'"time" is {given[:_SHOWN]!r}')
        return refusing(frame, rows, refused)


_GROUPS = (
    *("address", "user", "time", "request", "status", "bytes", "referrer", "agent", "seconds"),
    *("router", "server", "milliseconds", "ingress"),
)


def _either(first: pl.Series, second: pl.Series) -> pl.Series:
    return first.zip_with(first.is_not_null(), second)


def _without_dash(column: pl.Series) -> pl.Series:
    return column.set(column == "-", None) if column.dtype == pl.String else column
