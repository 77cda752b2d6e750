"""Recorded streams as messages: the format is found out, every event becomes one post on the topic.

A file is JSON lines or one JSON document, plain or packed by gzip.

Lines that are not JSON, or not an event of the recording's format, are passed on as they are: whoever reads
the topic has to deal with them, as with any sender's mistakes.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain, islice
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

from . import jetstream, mastodon, twitter_v1, twitter_v2
from .batch import Batch
from .opened import RecordingError, opened, whole
from .post import Post, Unrecognised, encode

FORMATS: dict[str, ModuleType] = {kind.NAME: kind for kind in (jetstream, twitter_v1, twitter_v2, mastodon)}

_LOOKED_AT = 1_000  # lines in which an event must be recognised
_REMEMBERED = 1_000_000  # latest events among which a repeat is noticed
_LINES_A_BATCH = 10_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Recording:
    """A file of recorded events.

    `kind` is one of `FORMATS`. `speed`: how many times faster than it was recorded to replay it; 0 is at
    once. `seconds`: after how long the replay ends, if the recording lasts longer.
    """

    path: Path
    kind: str
    speed: float = 1.0
    seconds: float | None = None

    @property
    def format(self) -> ModuleType:
        """The module that reads its events."""
        return FORMATS[self.kind]

    @classmethod
    def open(cls, path: str | Path, speed: float = 1.0, seconds: float | None = None) -> Recording:
        """Find out a file's format. Raises `RecordingError` if it is absent, empty or of an unknown one."""
        path = Path(path)
        if speed < 0:
            raise RecordingError(f"the speed is {speed}; it must be 0 (at once) or above")
        if path.is_dir():
            raise RecordingError(f"{path} is a folder; name one file of it")
        if not path.is_file():
            raise RecordingError(f"{path}: there is no such file")
        read = False
        with whole(path):
            for line in islice(lines_of(path), _LOOKED_AT):
                read = True
                for event in events_of(line):
                    for name, kind in FORMATS.items():
                        if kind.recognises(event):
                            return cls(path, name, speed, seconds)
        known = ", ".join(FORMATS)
        wrong = f"none of its first {_LOOKED_AT} lines is an event of {known}" if read else "it is empty"
        raise RecordingError(f"{path} can't be replayed: {wrong}")

    def batches(self) -> Iterator[Batch]:
        """The events in the order recorded, in the recording's own rhythm (divided by `speed`)."""
        seen: dict[tuple[str, str], None] = {}
        messages = chain.from_iterable(self._messages(line, seen) for line in lines_of(self.path))
        first: datetime | None = None
        latest = _EPOCH
        while chunk := list(islice(messages, _LINES_A_BATCH)):
            sent = []
            for _, _, moment in chunk:
                if moment is not None:
                    latest = max(latest, moment)
                    first = first or moment
                sent.append(latest)
            begin = first or _EPOCH
            due = [max((moment - begin).total_seconds(), 0.0) for moment in sent]
            batch = Batch(
                pa.array([value for value, _, _ in chunk], pa.large_binary()),
                np.array([key for _, key, _ in chunk], np.uint32),
                np.array([(moment - _EPOCH) // timedelta(milliseconds=1) for moment in sent], np.int64),
                np.array(due) / self.speed if self.speed else np.zeros(len(chunk)),
            )
            stop = len(batch)
            if self.seconds is not None:
                stop = int(np.searchsorted(batch.due, self.seconds, side="right"))
            yield batch.slice(0, stop)
            if stop < len(batch):
                return

    def _messages(
        self, line: bytes, seen: dict[tuple[str, str], None]
    ) -> Iterable[tuple[bytes, int, datetime | None]]:
        events = events_of(line)
        if not events:
            return [(line, 0, None)]
        if self.format is twitter_v2:
            events = [tweet for event in events for tweet in twitter_v2.tweets(event)]
        made = []
        for event in events:
            try:
                post, sent = self.format.post(event)
            # A field of another type than its format says, at any depth, makes a foreign event of it.
            except (Unrecognised, AttributeError, TypeError, KeyError):
                made.append((line if len(events) == 1 else json.dumps(event).encode(), 0, None))
                continue
            _mark_repeat(post, seen)
            made.append((encode(post), zlib.crc32(post["author"].encode("utf-8", "replace")), sent))
        return made


def _mark_repeat(post: Post, seen: dict[tuple[str, str], None]) -> None:
    event = (post["kind"], post["id"])
    if event in seen:
        post["kind"] = "repeat"
        return
    seen[event] = None
    if len(seen) > _REMEMBERED:
        del seen[next(iter(seen))]


def lines_of(path: Path) -> Iterator[bytes]:
    """The file's lines, or, if it is one JSON document over several lines, that document."""
    with opened(path) as file:
        start = next((line for line in file if line.strip()), b"")
    if _parsed(start) is None and start.lstrip()[:1] in (b"{", b"["):
        with opened(path) as file:
            whole = file.read()
        if _parsed(whole) is not None:
            yield whole
            return
    with opened(path) as file:
        for line in file:
            if stripped := line.rstrip(b"\r\n"):
                yield stripped


def events_of(line: bytes) -> list[dict[str, Any]]:
    """The JSON objects in a line: one, those of a list, or none."""
    parsed = _parsed(line)
    found = parsed if isinstance(parsed, list) else [parsed]
    return found if found and all(isinstance(event, dict) for event in found) else []


def _parsed(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
