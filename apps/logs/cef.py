"""Events of security devices: ArcSight's CEF and QRadar's LEEF, plain or after a syslog header.

Fields follow one another without quotes, so an attacker may make a device that doesn't escape values write a
field twice. Such a field has no value.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from ...operators.definition.stream import Stream
from ..app import AppFormat, Feed, Message, Settings
from .columns import filled, in_columns
from .lines import NOWHERE, first_lines, reads
from .members import whole
from .patterned_lines import HEAD, ISO, MILLISECONDS, PatternedLines
from .years import YEAR, timed_by_year

USUAL = {"zone": "UTC", **YEAR}

_PART = r"(?:[^|\\]|\\.)*"
PATTERN = (
    rf"^(?:{HEAD}(?:\S+ \S+ \S+ (?:-|\[.*?\]) )?)?(?P<form>CEF|LEEF): ?(?P<version>\d+(?:\.\d+)?)"
    rf"\|(?P<vendor>{_PART})\|(?P<product>{_PART})\|{_PART}\|(?P<kind>{_PART})\|(?P<rest>.*)$"
)
"""A header and the fields after it; CEF has two more parts, LEEF 2.0 its delimiter."""

_TIME = (
    r"(?:^|\||\t|\^| )(?:rt|devTime|end|start|UNIFIutcTime)="
    r"(\d{13}|[A-Z][a-z]{2} \d\d \d{4} \d\d:\d\d:\d\d(?:\.\d+)?"
    r"|\d{4}-\d\d-\d\d[T ][\d:.]+(?:Z|[+-]\d\d:?\d\d)?)"
)
_FORMATS = (MILLISECONDS, ISO, "%b %d %Y %H:%M:%S%.f")
_LOGIN = r"(?i)log[- ]?[io]n|logon|auth|password|credential"
_REFUSED = r"(?i)^(?:fail|den|reject|block|invalid)"
_SEVERE = ["high", "very-high", "critical"]


def _of_cef(key: str, rest: pl.Expr) -> pl.Expr:
    """Extract a CEF field, which ends before the next name with an equals sign."""
    begin = rf"(?:^|\|| ){key}="
    value = rest.str.extract(rf"{begin}(.*?)(?: +[A-Za-z][\w.\[\]-]*=|\s*$)")
    return pl.when(rest.str.count_matches(begin) == 1).then(filled(value.str.replace_all(r"\\(.)", "$1")))


def _of_leef(key: str, rest: pl.Expr) -> pl.Expr:
    begin = rf"(?:^|[\t^|]){key}="
    value = rest.str.extract(rf"{begin}([^\t^]*)")
    return pl.when(rest.str.count_matches(begin) == 1).then(filled(value))


def _field(cef: str, leef: str) -> pl.Expr:
    rest = pl.col("rest")
    return pl.when(pl.col("form") == "CEF").then(_of_cef(cef, rest)).otherwise(_of_leef(leef, rest))


def _begun(feed: Feed, settings: Settings) -> Stream:
    lines = PatternedLines("CEF or LEEF", PATTERN, _FORMATS, settings["zone"], _TIME)
    return feed.stream(lines, time="time")


def _rows(feed: Feed, settings: Settings) -> Stream:
    # CEF's header also has a name and a severity; a name may contain an escaped bar.
    rest, is_cef = pl.col("rest"), pl.col("form") == "CEF"
    name = pl.when(is_cef).then(rest.str.extract(rf"^({_PART})\|"))
    severity = (
        pl.when(is_cef).then(rest.str.extract(rf"^{_PART}\|([^|]*)\|")).otherwise(_of_leef("sev", rest))
    )
    outcome, action = _field("outcome", "outcome"), _field("act", "action")
    what = pl.coalesce(name, "kind")
    said = pl.concat_str(what, pl.col("kind"), outcome, separator=" ", ignore_nulls=True)
    refused = said.str.contains(_LOGIN) & (
        pl.coalesce(outcome, action).str.contains(_REFUSED) | said.str.contains(r"(?i)\bfail")
    )
    level = severity.cast(pl.Float64, strict=False) >= 7
    return in_columns(
        _begun(feed, settings),
        settings,
        host=pl.coalesce("head_host", _field("dvchost", "identHostName"), "product"),
        address=_field("src", "src"),
        user=pl.coalesce(_field("duser", "usrName"), _field("suser", "usrName")),
        operation=pl.coalesce(_field("request", "url"), what),
        status=pl.coalesce(outcome, action, severity),
        failed=pl.coalesce(level, severity.str.to_lowercase().is_in(_SEVERE)).fill_null(False)
        | refused.fill_null(False),
        refused=refused.fill_null(False),
        bytes=whole(_field("in", "bytesIn")).fill_null(0) + whole(_field("out", "bytesOut")).fill_null(0),
        agent=_field("requestClientApplication", "userAgent"),
        message=pl.coalesce(_field("msg", "msg"), what),
        term=pl.concat_str("product", what, outcome, ignore_nulls=True, separator=" "),
    )


def _messages(path: Path, settings: Settings) -> Iterator[Message]:
    return timed_by_year(_begun(NOWHERE, settings), path, settings)


CEF = AppFormat(
    "cef",
    "CEF and LEEF, plain or in syslog, an event a message",
    _rows,
    lambda path, head: reads(_begun(NOWHERE, USUAL), first_lines(head)),
    _messages,
    USUAL,
)
"""By ArcSight's "Implementing ArcSight CEF", revision 25, and IBM's "Log Event Extended Format", 2.0."""
