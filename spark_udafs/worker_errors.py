"""Show errors of Python workers in one line, without the stack traces of Spark's layers.

A worker sends Spark the text of its error. For errors that are meant for users, `raised_alone` leaves the
traceback out. Spark then wraps the text in its own errors, which `last_error` removes again.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.errors.exceptions import captured

from ..sketches.core.errors import StreamgaugeError

_HIDDEN = "SPARK_HIDE_TRACEBACK"
"""The variable that Spark's worker checks to format an error (`pyspark.util.handle_worker_exception`)."""
_PACKAGE = str(Path(__file__).resolve().parents[1])
_RAISED = re.compile(r"^(?P<place>(?:\w+\.)*)(?P<kind>[A-Z]\w*): (?P<message>.*\S)\s*$")
_OF_SOURCE = re.compile(r"^\[PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR\].* throw exception: (.*)")
_SOURCE_FAILED = re.compile(r"^\[PYTHON_DATA_SOURCE_ERROR\] [^:]*: ")
_WORKER = re.compile("Python worker|PYTHON_DATA_SOURCE_ERROR|PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR")
_DESCRIBED = "=== Streaming Query ==="
"""The line with which Spark begins to describe the failed query."""
_OF_JAVA = re.compile(r"^(?:java|scala|org|py4j|Caused)\b")


@contextmanager
def raised_alone() -> Iterator[None]:
    """Make Spark show an error of this package without its traceback; errors of other code keep theirs."""
    try:
        yield
    except (StreamgaugeError, TypeError, ValueError, LookupError, OSError) as error:
        frames = traceback.extract_tb(error.__traceback__)
        if isinstance(error, StreamgaugeError) or frames[-1].filename.startswith(_PACKAGE):
            # The worker ends with this error, so it can't hide another one.
            os.environ[_HIDDEN] = "1"
        raise


def last_error(text: str) -> str | None:
    """Extract Python's final error from Spark's text; None if there is none.

    An error of this package takes precedence, because Spark may have failed again because of it.

    >>> last_error("a task failed:\\nTraceback (most recent call last):\\nValueError: no time\\n\\tat org.a")
    'ValueError: no time'
    >>> last_error("  An exception was thrown:\\nstreamgauge.sketches.core.errors.SketchError: not a sketch")
    'not a sketch'
    >>> last_error("ValueError: no topic\\n=== Streaming Query ===\\nIdentifier: [id = 1]")
    'ValueError: no topic'
    """
    text = text.partition(_DESCRIBED)[0]
    lines = [_SOURCE_FAILED.sub("", line) for line in text.splitlines()]
    errors = [match for line in lines if not _OF_JAVA.match(line) and (match := _RAISED.match(line))]
    if not errors:
        return None
    ours = [match for match in errors if match["place"].startswith("streamgauge.")]
    error = (ours or errors)[-1]
    message = error["message"].partition(" SQLSTATE: ")[0]
    if source := _OF_SOURCE.match(message):
        return source[1]
    return message if ours else f"{error['kind']}: {message}"


def show_in_one_line() -> None:
    """Make Spark's errors of Python workers and sources show only the error if its traceback is hidden."""
    connect = sys.modules.get("pyspark.errors.exceptions.connect")
    for module in (captured, connect):
        for name in ("PythonException", "AnalysisException"):
            kind: Any = getattr(module, name, None)
            if kind is not None and "_streamgauge" not in vars(kind):
                kind._streamgauge, kind.__str__ = kind.__str__, _one_line


def _one_line(error: Any) -> str:
    text = str(type(error)._streamgauge(error))
    if "Traceback (most recent call last)" in text or not _WORKER.search(text):
        return text
    return last_error(text) or text
