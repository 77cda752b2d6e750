"""Terminal output: names and texts of messages are data there, never commands.

Otherwise a topic's producer could clear the screen, set the window's title, reverse text or forge a line.
Everything that prints does so through `write_line`, `write_json`, `LogFormatter` or
`console.TerminalConsole`.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Callable
from typing import Any, TextIO

from ..rendering.names import CONTROLS, escaped


def write_line(text: str, file: TextIO | None = None, flush: bool = False) -> None:
    r"""Print one line, escaped; to standard output by default.

    >>> write_line("fired\n2026-01-01 forged")
    fired\n2026-01-01 forged
    """
    print(escaped(text), file=file or sys.stdout, flush=flush)


def write_json(value: Any, file: TextIO | None = None, flush: bool = False) -> None:
    r"""Print plain values as one line of JSON, safe for any terminal.

    >>> write_json({"name": "\u202eé"})
    {"name": "\u202eé"}
    """
    print(json_line(value), file=file or sys.stdout, flush=flush)


def json_line(value: Any, default: Callable[[Any], Any] | None = None) -> str:
    """Plain values as JSON, with the characters that `escaped` escapes written as JSON escapes."""
    return escaped_json(json.dumps(value, ensure_ascii=False, default=default))


def escaped_json(text: str) -> str:
    r"""Write what `escaped` escapes within the strings of a JSON text as JSON escapes.

    >>> escaped_json('["\u202eé"]') == r'["\u202eé"]'
    True
    """
    return CONTROLS.sub(_in_json, text)


class LogFormatter(logging.Formatter):
    """Log records as lines of text; line ends of tracebacks stay, those in messages are escaped."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter`."""
        return escaped(super().formatMessage(record))

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter`."""
        return escaped(super().format(record), lines=True)


def _in_json(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
