"""Recorded events of social networks as messages, line by line as they are; what isn't JSON goes on, too."""

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
"""Who sent an event, and when (ms since 1970); what it raises of a foreign one means that nobody knows."""

_LOOKED_AT = 1_000
"""Lines in which an event must be recognised."""
_FOREIGN = ValueError, AttributeError, TypeError, KeyError


def recognised_by(is_event: Callable[[Event], bool]) -> Callable[[Path, bytes], bool]:
    """`AppFormat.recognises` of the files in whose first lines there is such an event."""

    def recognises(path: Path, head: bytes) -> bool:
        lines = islice(_lines(path), _LOOKED_AT)
        return any(map(is_event, chain.from_iterable(map(_objects, lines))))

    return recognises


def messages_by(sender: Sender) -> Callable[[Path, Settings], Iterator[Message]]:
    """`AppFormat.messages` of files with an event a line, keyed by who sent them."""

    def messages(path: Path, settings: Settings) -> Iterator[Message]:
        return (message(line, event, sender) for line, event in events(path))

    return messages


def message(line: bytes, event: Event, sender: Sender) -> Message:
    """A line as a message; its event is decoded by the reader of the topic."""
    try:
        author, sent = sender(event)
    except _FOREIGN:
        return Message(line)
    return Message(line, str(author or "").encode("utf-8", "replace"), None if sent is None else int(sent))


def events(path: Path) -> Iterator[tuple[bytes, Event]]:
    """Each event of a file, plain or packed by gzip: its bytes, and its members; none of what is no object.

    A list of events, on one line or as a whole document, is one event after the other.
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
    """An event as one line of JSON."""
    return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _lines(path: Path) -> Iterable[bytes]:
    """The file's lines, or, if it is one JSON document over several lines, that document."""
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
    """The JSON objects in a line: one, those of a list, or none."""
    parsed = _parsed(line)
    objects = parsed if isinstance(parsed, list) else [parsed]
    return objects if objects and all(isinstance(one, dict) for one in objects) else []


def _parsed(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
