"""Recorded events of social networks as messages, one per line and unchanged, even if they aren't JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

from ...app import Message, Settings
from ...recordings.compressed_files import opened

Event = dict[str, Any]
Sender = Callable[[Event], tuple[Any, float | None]]
"""Returns who sent an event, and when (ms since 1970); an error for a foreign event means unknown."""

_LOOKED_AT = 1_000
"""The number of lines within which an event must be recognised."""
_FOREIGN = ValueError, AttributeError, TypeError, KeyError


def recognised_by(is_event: Callable[[Event], bool]) -> Callable[[Path, bytes], bool]:
    """Return an `AppFormat.recognises` for files with such an event in their first lines."""

    def recognises(path: Path, head: bytes) -> bool:
        lines = islice(_lines(path), _LOOKED_AT)
        return any(map(is_event, chain.from_iterable(map(_objects, lines))))

    return recognises


def messages_by(sender: Sender) -> Callable[[Path, Settings], Iterator[Message]]:
    """Return an `AppFormat.messages` for files with one event per line, keyed by sender."""

    def messages(path: Path, settings: Settings) -> Iterator[Message]:
        return (message(line, event, sender) for line, event in events(path))

    return messages


def message(line: bytes, event: Event, sender: Sender) -> Message:
    """Convert a line to a message; the reader of the topic decodes its event."""
    try:
        author, sent = sender(event)
    except _FOREIGN:
        return Message(line)
    return Message(line, str(author or "").encode("utf-8", "replace"), None if sent is None else int(sent))


def events(path: Path) -> Iterator[tuple[bytes, Event]]:
    """Read each event of a file, plain or gzip: its bytes, and its members, or none if it isn't an object.

    A list, on one line or as a whole document, is split into its events.
    """
    for line in _lines(path):
        objects = _objects(line)
        if len(objects) == 1 and line.lstrip()[:1] != b"[":
            yield line, objects[0]
        elif not objects:
            yield line, {}
        else:
            for one in objects:
                yield encoded(one), one


def encoded(event: Any) -> bytes:
    """Encode an event as one line of JSON."""
    return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _lines(path: Path) -> Iterable[bytes]:
    """Return the file's lines, or the whole file if it is one JSON document over several lines."""
    with opened(path) as file:
        start = next((line for line in file if line.strip()), b"")
    if _parsed(start) is None and start.lstrip()[:1] in (b"{", b"["):
        with opened(path) as file:
            document = file.read()
        if _parsed(document) is not None:
            yield document
            return
    with opened(path) as file:
        for line in file:
            if stripped := line.rstrip(b"\r\n"):
                yield stripped


def _objects(line: bytes) -> list[Event]:
    """Return the JSON objects in a line: one, those of a list, or none."""
    parsed = _parsed(line)
    objects = parsed if isinstance(parsed, list) else [parsed]
    return objects if objects and all(isinstance(one, dict) for one in objects) else []


def _parsed(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
