"""Structured logs: each record names its run, and a formatter writes it as JSON.

All loggers of the package are below `streamgauge`. Their records have the fields `FIELDS`, from the call's
``extra=`` and otherwise from the thread's run, so every handler can use them.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Literal, TextIO, get_args

from ..secrets import without_secrets
from .terminal import LogFormatter, json_line

FIELDS = ("run", "group", "topic", "partition", "offset")

LogFormat = Literal["text", "json"]

_about: ContextVar[Mapping[str, Any]] = ContextVar("streamgauge-run", default=MappingProxyType({}))


class AboutRun(logging.Filter):
    """Add the missing fields to a record."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the fields; the record always passes."""
        about = _about.get()
        for name in FIELDS:
            if name in about and not hasattr(record, name):
                setattr(record, name, about[name])
        return True


for _name in ("streamgauge.kafka", "streamgauge.kafka.librdkafka"):
    # A logger's filter only sees records logged under exactly that name.
    logging.getLogger(_name).addFilter(AboutRun())


@contextmanager
def about(**fields: Any) -> Iterator[None]:
    """Add these fields to this thread's records within the block."""
    before = _about.set({**_about.get(), **fields})
    try:
        yield
    finally:
        _about.reset(before)


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON: `time`, `level`, `logger`, `message`, `FIELDS`, and `error` if any.

    Credentials in URLs are hidden, as in everything that streamgauge logs.

    >>> import streamgauge as sg
    >>> fields = {"name": "streamgauge.kafka", "levelname": "INFO", "msg": "no http://a:x@box", "created": 0}
    >>> print(sg.JsonFormatter().format(logging.makeLogRecord(fields | {"group": "trends"})))
    {"time": "1970-01-01T00:00:00.000+00:00", "level": "INFO", "logger": "streamgauge.kafka", \
"message": "no http://…@box", "group": "trends"}
    """

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        fields: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": without_secrets(record.getMessage()),
        }
        fields |= {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
        if record.exc_info and record.exc_info[0] is not None:
            fields["error"] = without_secrets(self.formatException(record.exc_info))
        elif record.exc_text:
            fields["error"] = without_secrets(record.exc_text)
        return json_line(fields, default=str)


class _TextFormatter(LogFormatter):
    """Records as text, including tracebacks, with the logins in URLs hidden."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        return without_secrets(super().format(record))


def log_to(
    stream: TextIO | None = None, *, format: LogFormat = "text", level: int | str = logging.INFO
) -> Callable[[], None]:
    """Write streamgauge's log to `stream` (standard error by default), as text or as lines of JSON.

    Use it in programs that don't configure logging themselves; others can use the formatter
    `streamgauge.JsonFormatter` in their own handler. It includes the records of worker processes. It returns
    a function that undoes it: call that before calling this again.

    Raises `ValueError` for an unknown format or level.

    >>> import io, json
    >>> import streamgauge as sg
    >>> written = io.StringIO()
    >>> undo = sg.log_to(written, format="json", level="WARNING")
    >>> logging.getLogger("streamgauge.kafka").warning("waiting for %s", "a broker", extra={"topic": "posts"})
    >>> undo()
    >>> fields = json.loads(written.getvalue())
    >>> fields["message"], fields["topic"], fields["level"]
    ('waiting for a broker', 'posts', 'WARNING')
    """
    if format not in get_args(LogFormat):
        raise ValueError(f"format must be {' or '.join(map(repr, get_args(LogFormat)))}, got {format!r}")
    root, handler = logging.getLogger("streamgauge"), logging.StreamHandler(stream or sys.stderr)
    before = root.level
    root.setLevel(level)  # raises `ValueError` for an unknown level
    handler.setFormatter(JsonFormatter() if format == "json" else _TextFormatter())
    root.addHandler(handler)

    def undo() -> None:
        root.removeHandler(handler)
        root.setLevel(before)

    return undo
