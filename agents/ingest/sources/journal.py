"""systemd's journal, in its export format: each entry becomes a JSON message with its fields.

Source: https://systemd.io/JOURNAL_EXPORT_FORMATS/
"""

from __future__ import annotations

import json
import logging
import os
import select
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..batch import Batch, DeadLine, IngestError, Positions
from ..component import Place

log = logging.getLogger("streamgauge.ingest")

_PART = "cursor"
_BLOCK = 1024 * 1024
_MOST = 5_000
_LARGEST_FIELD = 64 * 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Journal:
    """The output of `command` in the export format; after a restart, the last entry's cursor is added to it.

    New entries are followed; with ``--once``, only existing entries are read. Fields that aren't UTF-8 become
    lists of numbers, as in ``journalctl -o json``.
    """

    command: Sequence[str] = ("journalctl", "--output=export", "--quiet")
    start: str = "--boot"

    def open(self, place: Place, positions: Positions) -> JournalSource:
        """See `SourceSettings`."""
        cursor = (positions.get(_PART) or {}).get("cursor")
        where = [f"--after-cursor={cursor}"] if cursor else [self.start] * bool(self.start)
        return JournalSource([*self.command, *([] if place.once else ["--follow"]), *where], place.once)


class JournalSource:
    """A `Source` of a program's entries. Raises `IngestError` if it can't be run, or fails."""

    waited_for = False

    def __init__(self, command: Sequence[str], once: bool) -> None:
        self._command = command
        self.finite = once
        try:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        except OSError as error:
            raise IngestError(f"{command[0]} can't be run: {error.strerror}") from None
        assert self._process.stdout is not None
        self._output = self._process.stdout.fileno()
        self._rest = b""
        self._over = False

    @property
    def ended(self) -> bool:
        """See `Source`."""
        return self._over and not self._rest

    def read(self, seconds: float) -> Batch | None:
        """See `Source`."""
        deadline = time.monotonic() + seconds
        while True:
            left = max(deadline - time.monotonic(), 0.0)
            if not self._over and select.select([self._output], [], [], left)[0]:
                data = os.read(self._output, _BLOCK)
                self._over = not data
                self._rest += data
                if self._over:
                    self._check()
                    self._rest += b"\n" * bool(self._rest)
            batch = self._next()
            if batch is not None or self._over or time.monotonic() >= deadline:
                return batch

    def close(self) -> None:
        """See `Source`."""
        self._process.terminate()
        self._process.wait()

    def _check(self) -> None:
        """Check how the program ended; if it should have followed the journal, this is a failure."""
        assert self._process.stderr is not None
        said = self._process.stderr.read().decode(errors="replace").strip()
        code = self._process.wait()
        if code or not self.finite:
            raise IngestError(f"{self._command[0]} ended with {code}{f': {said}' if said else ''}")

    def _next(self) -> Batch | None:
        values: list[bytes] = []
        dead: list[DeadLine] = []
        cursor: Any = None
        while len(values) < _MOST:
            entry, size, fault = parse_entry(self._rest)
            if size == 0:
                break
            raw, self._rest = self._rest[:size], self._rest[size:]
            if fault is not None:
                dead.append(DeadLine(fault, raw))
            elif entry:
                cursor = entry.get("__CURSOR", cursor)
                values.append(json.dumps(entry, ensure_ascii=False).encode())
        if self._over and self._rest and not values and not dead:
            dead.append(DeadLine("an entry that is cut off", self._rest))
            self._rest = b""
        if not values and not dead:
            return None
        positions = {_PART: {"cursor": cursor}} if isinstance(cursor, str) else {}
        return Batch.of(values, stream="journal", dead=dead, positions=positions)


Field = str | list[Any]
"""A text, its bytes as numbers if it isn't UTF-8, or several of these."""


def parse_entry(data: bytes) -> tuple[dict[str, Field], int, str | None]:
    r"""Return the first entry's fields, its number of bytes (0: its end isn't there yet), and what is wrong
    with it.

    A repeated field becomes a list of its values.

    >>> parse_entry(b"__CURSOR=s=1\nMESSAGE=hello\n\nrest")[:2]
    ({'__CURSOR': 's=1', 'MESSAGE': 'hello'}, 28)
    >>> parse_entry(b"MESSAGE\n\x05\0\0\0\0\0\0\0a\nb\nc\n\n")[0]
    {'MESSAGE': 'a\nb\nc'}
    """
    fields: dict[str, Field] = {}
    at = 0
    while True:
        end = data.find(b"\n", at)
        if end < 0:
            return {}, 0, None
        if end == at:
            return fields, end + 1, None
        name, equals, value = data[at:end].partition(b"=")
        at = end + 1
        if not equals:
            if len(data) < at + 8:
                return {}, 0, None
            size = int.from_bytes(data[at : at + 8], "little")
            if size > _LARGEST_FIELD:
                # Bytes after a wrong length can't be trusted: continue after the next empty line.
                empty = data.find(b"\n\n", at)
                whole = empty >= 0
                return {}, (empty + 2) * whole, f"a field of {size} bytes" if whole else None
            if len(data) < at + 8 + size + 1:
                return {}, 0, None
            value = data[at + 8 : at + 8 + size]
            at += 8 + size + 1
        _add(fields, name.decode(errors="replace"), value)


def _add(fields: dict[str, Field], name: str, value: bytes) -> None:
    try:
        shown: Field = value.decode()
    except UnicodeDecodeError:
        shown = list(value)
    if name not in fields:
        fields[name] = shown
        return
    before = fields[name]
    several = isinstance(before, list) and bool(before) and not isinstance(before[0], int)
    fields[name] = [*before, shown] if several else [before, shown]
