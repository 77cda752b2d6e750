"""The positions of a tail's files, including files whose content has moved elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ..batch import Positions
from .file_identity import FilePosition

_GONE_KEPT = 100
_GONE_SECONDS = 30 * 86_400.0
"""How long positions of deleted files are stored, because copies of them may appear later."""


class TailPositions:
    """Positions by file key, and their changes since a batch last carried them.

    The position of a file whose content was replaced is stored under a key of its own, so that reading
    continues at that position in the copy of the content.
    """

    def __init__(self, positions: Positions) -> None:
        self._known = FilePosition.by_key(positions)
        self._changed: dict[str, dict[str, Any] | None] = {}

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, key: str) -> bool:
        return key in self._known

    def get(self, key: str) -> FilePosition | None:
        """Return the position of a file, if it has one."""
        return self._known.get(key)

    def items(self) -> Iterator[tuple[str, FilePosition]]:
        """Return all positions; they may be changed during iteration."""
        yield from list(self._known.items())

    def of_stream(self, stream: str) -> Iterator[tuple[str, FilePosition]]:
        """Return the positions of a log at which something was read, the furthest first."""
        own = [item for item in self._known.items() if item[1].stream == stream and item[1].offset]
        yield from sorted(own, key=lambda item: -item[1].offset)

    def read_to(self, key: str, position: FilePosition) -> None:
        """Record that more of a file was read, at a position that the batch carries."""
        self._known[key] = position
        self._changed.pop(key, None)

    def move(self, old: str, key: str, path: str) -> FilePosition:
        """Record that the content of a file now belongs to another one."""
        position = replace(self._known[old], path=path, gone=0, replaced=False)
        self._change(old, None)
        self._change(key, position)
        return position

    def replaced(self, key: str) -> str | None:
        """Record that a file lost the content that was read; return its position's new key, if any."""
        position = self._known.get(key)
        if position is None:
            return None
        self._change(key, None)
        if not position.offset:
            return None
        other = f"{key}#{position.tail}"
        self._change(other, replace(position, gone=int(time.time()), replaced=True))
        self._drop_old(position.stream)
        return other

    def leave(self, key: str) -> None:
        """Record that a file is gone."""
        position = self._known[key]
        self._change(key, replace(position, gone=int(time.time())))
        self._drop_old(position.stream)

    def take_changes(self) -> dict[str, dict[str, Any] | None]:
        """Return the changes that no batch has carried yet; the caller takes care of them."""
        changed, self._changed = self._changed, {}
        return changed

    def _change(self, key: str, position: FilePosition | None) -> None:
        if position is None:
            self._known.pop(key, None)
        else:
            self._known[key] = position
        self._changed[key] = None if position is None else position.describe()

    def _drop_old(self, stream: str) -> None:
        gone = [(p.gone, key) for key, p in self._known.items() if p.gone and p.stream == stream]
        gone.sort(reverse=True)
        for at, (when, key) in enumerate(gone):
            if at >= _GONE_KEPT or time.time() - when > _GONE_SECONDS:
                self._change(key, None)
