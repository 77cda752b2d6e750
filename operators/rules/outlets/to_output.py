"""Alerts on standard output and in a file."""

from __future__ import annotations

import json
import os
import threading
from dataclasses import dataclass, field
from pathlib import Path

from ...watching.terminal import json_line, write_json, write_line
from ..alert import Alert

_TAIL_BYTES = 4 * 1024 * 1024
"""How much of a file's end is searched for existing alerts: far more than one crash repeats."""


@dataclass(frozen=True)
class AlertsToConsole:
    """Print alerts on standard output, one per line: as text for people, or with `json` as JSON.

    After a crash the last ones may be printed again.

    >>> import streamgauge as sg
    >>> alert = sg.rules.Alert("hot", "threshold", "fired", ("a",), 0, 0, 31.0, 31.0, 31.0, 30.0, "31 > 30")
    >>> sg.rules.AlertsToConsole().write(alert)
    1970-01-01T00:00:00+00:00 hot a fired: 31 > 30
    """

    json: bool = False

    def begin(self) -> None:
        """See `operators.rules.alerting.WritingOutlet`."""

    def write(self, alert: Alert) -> None:
        """See `operators.rules.alerting.WritingOutlet`."""
        if self.json:
            write_json(alert.to_dict(), flush=True)
        else:
            write_line(str(alert), flush=True)


@dataclass(frozen=True)
class AlertsToFile:
    """Append alerts to a file, as lines of JSON, each once.

    After a crash, an alert that is already among the last lines is recognised by its id. A line that the
    crash has truncated is removed, and its alert is written again. Several runs may append to one file.
    Raises `OSError`, when the run starts, for a file that can't be written; if the disk fills up later, the
    run ends, and the next run continues with the alert that was not written.

    >>> from tempfile import TemporaryDirectory
    >>> import streamgauge as sg
    >>> alert = sg.rules.Alert("hot", "threshold", "fired", ("a",), 0, 0, 31.0, 31.0, 31.0, 30.0, "31 > 30")
    >>> with TemporaryDirectory() as folder:
    ...     for run in range(2):
    ...         alerts = sg.rules.AlertsToFile(Path(folder, "alerts.jsonl"))
    ...         alerts.begin()
    ...         alerts.write(alert)
    ...     len(Path(folder, "alerts.jsonl").read_text().splitlines())
    1
    """

    path: str | Path
    _known: set[str] = field(default_factory=set, init=False, repr=False, compare=False)
    _turn: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False, compare=False)

    def begin(self) -> None:
        """See `operators.rules.alerting.WritingOutlet`."""
        path = Path(self.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL_BYTES))
            tail = file.read()
            whole = tail.rfind(b"\n") + 1
            if whole < len(tail):
                file.truncate(size - len(tail) + whole)
        self._known.clear()
        for line in tail[:whole].splitlines():
            try:
                self._known.add(str(json.loads(line)["id"]))
            except (ValueError, KeyError, TypeError):
                continue  # another program's line, or one truncated at the start of the tail

    def write(self, alert: Alert) -> None:
        """See `operators.rules.alerting.WritingOutlet`."""
        with self._turn:
            if alert.id in self._known:
                return
            with Path(self.path).open("ab") as file:
                file.write(_line(alert).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
            self._known.add(alert.id)


def _line(alert: Alert) -> str:
    return json_line(alert.to_dict())
