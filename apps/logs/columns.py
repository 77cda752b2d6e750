"""The columns of rows in every format, and the parsing of free text.

`host` is the origin of a record: a server, a service, a log; `address` and `user` sent the request,
`operation` is the request, `status` its outcome, a code or a level. `failed` is 1 if it failed, `refused` the
number of refused logins, `missing` is 1 if the requested object doesn't exist or is forbidden to the client,
`bytes` and `seconds` are the size and duration. `term` is the kind of a record, with few different values, so
that a new value is news. `at` is its own time, `sign` what a line says about a login (`daemon_texts.Sign`),
`connection` the process of a daemon that has one per connection.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from ...operators.definition.stream import Stream
from ..app import Settings

COLUMNS = {
    **dict.fromkeys(("host", "address", "user", "operation", "status"), pl.String()),
    **dict.fromkeys(("failed", "refused", "missing", "bytes"), pl.Int64()),
    "seconds": pl.Float64(),
    **dict.fromkeys(("agent", "message", "term", "sign", "connection"), pl.String()),
    "at": pl.Datetime("us", "UTC"),
}

LOGINS = {"probes": "yes"}
"""Whether clients count as refused if a daemon rejected them before they tried to log in: scanners, and
clients that only check whether the port is open."""

_ADDRESS = r"(?:\d{1,3}\.){3}\d{1,3}|[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}"
_FROM = rf"\b(?:from|by) \[?({_ADDRESS})\b"
_REMOTE = r"\brhost=([^\s;]+)"
_OF_USER = r"\bfor (?:(?:invalid|illegal) user )?(\S+) from "
_USER = r"\buser(?:[ =]|name=)'?([\w.@$-]+)"
_LEVELS = "emerg emergency panic alert crit critical fatal severe error err e f".split()  # noqa: SIM905
_WENT_WRONG = r"(?i)\b(?:error|fail(?:ed|ure|ures)?|fatal|panic|exception|segfault|critical|denied)\b"
_MONTH = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_MASKS = (
    (r"\bfor (?:(?:invalid|illegal) user )?\S+ from ", "for <user> from "),
    (r"\b([Uu]ser(?:[ =]|name=))'?[\w.@$-]+'?", "$1<user>"),
    (r'"[^"]*"', '"<text>"'),
    (rf"\b(?:\w{{3}},? )?(?:{_MONTH})[a-z]* +\d{{1,2}},?(?: [\d:]+)?(?: \d{{4}})?\b", "<time>"),
    (r"\b(?:[A-Za-z0-9-]+\.)+(?:com|net|org|edu|gov|mil|info|biz|local|[a-z]{2})\b(?::\d+)?", "<host>"),
    (rf"\b(?:{_ADDRESS})(?::\d+)?\b", "<address>"),
    (r"[\w.+-]+@[\w-]+(?:\.[\w-]+)*", "<user>"),
    (r"\b([A-Za-z][\w.-]*=)[^\s,;()<>]+", "$1<v>"),
    (r"(?:^|\b)/[\w.@+-]+(?:/[\w.@+-]*)+", "<path>"),
    (r"[\w-]*\d[\w-]*(?:\.[\w-]*\d[\w-]*)*", "<n>"),
)
"""The variable parts of messages, as in Drain, from the longest forms to the shortest."""
_LONGEST = 200
_MAPPED = r"^::[fF]{4}:(\d{1,3}(?:\.\d{1,3}){3})$"
"""An IPv4 address as dual-stack servers write it."""


def in_columns(rows: Stream, settings: Settings, **given: pl.Expr) -> Stream:
    """Convert rows to the common columns; missing columns and empty texts are null.

    Lines of a connection without an address get the address that its other lines name. ``--set terms=…``
    uses another column's values as terms. Raises `ValueError` for an unknown column.
    """
    texts = [name for name, kind in COLUMNS.items() if kind == pl.String()]
    if (terms := settings["terms"]) and terms not in texts:
        raise ValueError(f"--set terms must be one of {', '.join(texts)}, got {terms}")
    if (probes := settings["probes"]) not in ("yes", "no"):
        raise ValueError(f"--set probes must be yes or no, got {probes}")
    if rows.time is not None and not rows.steps:
        given.setdefault("at", as_time(rows.time, rows.columns))
    columns = {name: given.get(name, pl.lit(None)).cast(kind) for name, kind in COLUMNS.items()}
    for name in ("failed", "refused", "missing"):
        columns[name] = columns[name].fill_null(0)
    columns["term"] = columns[terms or "term"]
    columns["address"] = columns["address"].str.replace(_MAPPED, "$1")
    result = rows.select(**columns).with_columns(**{name: filled(pl.col(name)) for name in texts})
    return of_connections(result, settings) if "connection" in given else result


def of_connections(rows: Stream, settings: Settings) -> Stream:
    """Fill missing addresses of lines about a login from other lines of their connection."""
    sign = pl.col("sign").fill_null("")
    nobody = sign.is_in(["ended", "probe"]) & pl.col("address").is_null()
    uncounted = nobody | (sign == "context") | ((sign == "probe") & (settings["probes"] == "no"))
    filled_rows = rows.fill_forward("address", by="connection")
    return filled_rows.with_columns(refused=pl.when(uncounted).then(0).otherwise(pl.col("refused")))


def as_time(time: pl.Expr, types: Mapping[str, Any]) -> pl.Expr:
    """Convert a stream's time to a timestamp; null for text in a rare form."""
    kind = pl.LazyFrame(schema=types).select(time).collect_schema().dtypes()[0]
    if kind != pl.String:
        return time.cast(pl.Datetime("us", "UTC"))
    text = time.str.replace(",", ".", literal=True).str.replace(" ", "T", literal=True)
    zoned = text.str.replace(r"([+-]\d{2})(\d{2})$", "$1:$2").str.to_datetime(
        "%+", time_unit="us", time_zone="UTC", strict=False
    )
    naive = text.str.to_datetime("%FT%T%.f", time_unit="us", strict=False).dt.replace_time_zone("UTC")
    return pl.coalesce(zoned, naive)


def login_columns(message: pl.Expr) -> dict[str, pl.Expr]:
    """Return the columns about logins, for rows that `logins.WithLogins` decoded.

    A message about a refused login in an unknown text has no address.
    """
    sign = pl.col("login_sign")
    return {
        "address": pl.coalesce("login_address", pl.when(sign.is_null()).then(address_in(message))),
        "user": pl.coalesce("login_user", pl.when(sign.is_null()).then(user_in(message))),
        "sign": sign,
        "refused": pl.col("login_times"),
        "connection": pl.col("connection"),
    }


def filled(text: pl.Expr) -> pl.Expr:
    """Replace empty text by null."""
    return pl.when(text != "").then(text)


def failed_status(status: pl.Expr, settings: Settings) -> pl.Expr:
    """Whether an HTTP status is a failure: at least ``--set errors=…``."""
    try:
        least = int(settings["errors"])
    except ValueError:
        raise ValueError(
            f"--set errors must be a status of HTTP, such as 400, got {settings['errors']}"
        ) from None
    return status.cast(pl.Int64, strict=False) >= least


def failed_level(level: pl.Expr) -> pl.Expr:
    """Whether a level is a failure: a word, a syslog number (up to 3), or a pino number (from 50)."""
    number = level.cast(pl.Int64, strict=False)
    counted = pl.when(number >= 10).then(number >= 50).otherwise(number <= 3)
    return pl.coalesce(counted, level.str.to_lowercase().is_in(_LEVELS))


def failed_text(message: pl.Expr) -> pl.Expr:
    """Whether a message says that something went wrong."""
    return message.str.contains(_WENT_WRONG)


def address_in(message: pl.Expr) -> pl.Expr:
    """Extract the address of origin from a message."""
    return pl.coalesce(message.str.extract(_FROM), message.str.extract(_REMOTE))


def user_in(message: pl.Expr) -> pl.Expr:
    """Extract the user from a message."""
    return pl.coalesce(message.str.extract(_OF_USER), message.str.extract(_USER))


def template(message: pl.Expr) -> pl.Expr:
    """Remove the variable parts of a message: addresses, hosts, numbers, users, quoted text.

    Only the first line counts. The result depends on this message only, so it is the same on every worker.
    """
    text = message.str.splitn("\n", 2).struct.field("field_0").str.slice(0, _LONGEST)
    for pattern, instead in _MASKS:
        text = text.str.replace_all(pattern, instead)
    return text
