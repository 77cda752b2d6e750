"""Recorded events of social networks, line by line as they are; what isn't JSON goes on, too."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from ...replay.opened import RecordingError
from ...replay.recorded import Recording, events_of, lines_of


def events(path: Path) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Each event of a file, plain or packed by gzip: its bytes, and its members; none of what is no object.

    A list of events, on one line or as a whole document, is one event after the other.
    """
    for line in lines_of(path):
        found = events_of(line)
        if len(found) == 1 and line.lstrip()[:1] != b"[":
            yield line, found[0]
        elif not found:
            yield line, {}
        else:
            for one in found:
                yield encoded(one), one


def encoded(event: Any) -> bytes:
    """An event as one line of JSON."""
    return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def is_of(network: ModuleType, path: Path) -> bool:
    """Whether a file holds events of a network, one of `apps.replay.recorded.FORMATS`."""
    try:
        return Recording.open(path).format is network
    except RecordingError:
        return False
