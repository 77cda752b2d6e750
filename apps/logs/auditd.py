"""Linux's audit log: records of the kernel and of programs, plain or through the journal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from ...operators.definition.stream import Stream
from ..app import AppFormat, Feed, Message, Settings
from .columns import filled, in_columns
from .lines import NOWHERE, first_lines, lines_of, reads, timed
from .patterned_lines import EPOCH, HEAD, PatternedLines

PATTERN = (
    rf"^(?:{HEAD}(?:audit(?:d|spd)?|kernel)(?:\[\d+\])?: (?:audit: )?)?(?:node=(?P<node>\S+) )?"
    r"type=(?P<kind>\w+)(?:\[\d+\])? (?:msg=)?audit\((?P<time>\d{9,10}\.\d+):(?P<serial>\d+)\): ?"
    r"(?P<message>.*)$"
)
_NUMBERS = {
    "1100": "USER_AUTH",
    "1101": "USER_ACCT",
    "1103": "CRED_ACQ",
    "1105": "USER_START",
    "1106": "USER_END",
    "1112": "USER_LOGIN",
    "1123": "USER_CMD",
    "1300": "SYSCALL",
    "1400": "AVC",
    "1701": "ANOM_ABEND",
}
"""Names of record types that have numbers in the kernel's own log (linux/audit.h)."""

_SIGNS = {"USER_AUTH": "failed", "USER_LOGIN": "announced"}


def _begun(feed: Feed) -> Stream:
    return feed.stream(PatternedLines("the audit log", PATTERN, (EPOCH,)), time="time")


def _rows(feed: Feed, settings: Settings) -> Stream:
    """Read records. PAM and the program each log a failed login; both name the same process: one attempt.

    Programs quote client-chosen values, or write them in hexadecimal digits, so that no name can forge a
    field.
    """
    kind = pl.col("kind").replace(_NUMBERS)
    message = pl.col("message")
    failed = message.str.contains(r"\b(?:res=(?:failed|0)|success=no)\b")
    of_kind = kind.replace_strict(_SIGNS, default=None, return_dtype=pl.String)
    sign = pl.when(failed).then(of_kind)
    address = message.str.extract(r"\baddr=([0-9A-Fa-f.:]*[0-9A-Fa-f])\b")
    process = message.str.extract(r"^(?:.* )?pid=(\d+)")
    host = pl.coalesce("node", "head_host")
    program = message.str.extract(r'\bexe="([^"]*)"').str.extract(r"([^/]+)$")
    known = sign.is_not_null()
    return in_columns(
        _begun(feed),
        settings,
        host=host,
        address=address.str.strip_prefix("::ffff:"),
        user=filled(message.str.extract(r'\b(?:acct|AUID)="([^"]*)"')),
        sign=sign,
        connection=pl.when(known).then(pl.concat_str(host.fill_null(""), process, separator=" ")),
        refused=known,
        operation=program,
        status=pl.when(failed).then(pl.lit("failed")),
        failed=failed,
        message=message,
        term=pl.concat_str(
            kind, program, pl.when(failed).then(pl.lit("failed")), ignore_nulls=True, separator=" "
        ),
    )


def _messages(path: Path, settings: Settings) -> Iterator[Message]:
    yield from timed(_begun(NOWHERE), lines_of(path))


AUDITD = AppFormat(
    "auditd",
    "Linux's audit log, a record a message",
    _rows,
    lambda path, head: reads(_begun(NOWHERE), first_lines(head)),
    _messages,
)
