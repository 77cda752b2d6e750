"""The text of members of JSON objects, at any place and of any type.

JSON logs use different names and types: a status is 404 or "404", a host is a name or an object with a name.
So the decoder reads members as raw JSON, which is then converted to text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import polars as pl

from ...operators.definition.stream import Stream
from ...operators.formats.decode import Decoder
from ...operators.formats.json.decoder import json
from ..app import Feed

_SLASHES = r"^(\d{4})/(\d{2})/(\d{2})"
_CLF = "%d/%b/%Y:%H:%M:%S %z"
_NUMBER = r"^\d+(?:\.\d*)?(?:[eE][+]?\d+)?$"


def begun(
    feed: Feed, paths: Iterable[str], time: pl.Expr, wrap: Callable[[Decoder], Decoder] = lambda one: one
) -> Stream:
    """Make a stream of JSON objects with the members at the beginning of these paths, and this event time.

    `wrap` may wrap the decoder.
    """
    names = {name: pl.Binary() for path in paths for name in (path, path.split(".")[0])}
    return feed.stream(wrap(json(names)), time=time)


def member(path: str) -> pl.Expr:
    """Return the text of the member at a path such as ``user.name``, which may also be a name with a dot."""
    whole, (first, *rest) = _text(path, "$"), path.split(".")
    inside = "$" + "".join(f"['{name}']" for name in rest)
    return pl.coalesce(whole, _text(first, inside)) if rest else whole


def first_of(paths: Iterable[str]) -> pl.Expr:
    """Return the first of these members that is neither missing nor empty, or null."""
    candidates = [pl.when(~member(path).is_in(["", "-"])).then(member(path)) for path in paths]
    return pl.coalesce(*candidates) if candidates else pl.lit(None, pl.String)


def moment(text: pl.Expr) -> pl.Expr:
    """Convert text with a time to ISO 8601, which streams read.

    Numbers are seconds, milliseconds, microseconds or nanoseconds since 1970, by their size; dates may have
    slashes, or the format of web servers.
    """
    number = pl.when(text.str.contains(_NUMBER)).then(text).cast(pl.Float64)
    micros = (
        pl.when(number < 1e11)
        .then(number * 1e6)
        .when(number < 1e14)
        .then(number * 1e3)
        .when(number < 1e17)
        .then(number)
        .otherwise(number / 1e3)
    )
    counted = micros.round().cast(pl.Int64, strict=False).cast(pl.Datetime("us", "UTC"))
    server = text.str.to_datetime(_CLF, time_unit="us", strict=False).dt.convert_time_zone("UTC")
    iso_text = pl.coalesce(counted, server).dt.to_string("%Y-%m-%dT%H:%M:%S%.6fZ")
    return pl.coalesce(iso_text, text.str.replace(_SLASHES, "$1-$2-$3"))


def whole(text: pl.Expr) -> pl.Expr:
    """Convert text to an integer; null if it isn't one."""
    return text.cast(pl.Float64, strict=False).round().cast(pl.Int64, strict=False)


def _text(name: str, path: str) -> pl.Expr:
    return pl.col(name).cast(pl.String).str.json_path_match(path)
