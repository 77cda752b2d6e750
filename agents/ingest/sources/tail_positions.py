"""How far the files of a tail were read: those that are there, and those whose content went elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ..batch import Positions
from .file_identity import FilePosition

_GONE_KEPT = 100
_GONE_SECONDS = 30 * 86_400.0
"""Positions of files that are gone, a log, that are kept: their copies may appear later."""


class TailPositions:
    """Positions by file key, and what of them has changed since a batch last carried them.

    The position of a file whose content was replaced is kept under a key of its own, so that the copy that
    was made of it is read on from there.
    """

    def __init__(self, positions: Positions) -> None:
        self._known = FilePosition.by_key(positions)
        self._changed: dict[str, dict[str, Any] | None] = {}

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, key: str) -> bool:
        return key in self._known

    def get(self, key: str) -> FilePosition | None:
        """The position of a file, if it has one."""
        return self._known.get(key)

    def items(self) -> Iterator[tuple[str, FilePosition]]:
        """All of them; they may be changed meanwhile."""
        yield from list(self._known.items())

    def of_stream(self, stream: str) -> Iterator[tuple[str, FilePosition]]:
        """Those of a log at which something was read, the furthest first."""
        own = [item for item in self._known.items() if item[1].stream == stream and item[1].offset]
        yield from sorted(own, key=lambda item: -item[1].offset)

    def read_to(self, key: str, position: FilePosition) -> None:
        """A file was read on; the batch carries its position."""
        self._known[key] = position
        self._changed.pop(key, None)

    def move(self, old: str, key: str, path: str) -> FilePosition:
        """The content of a file is another one's now."""
        position = replace(self._known[old], path=path, gone=0, replaced=False)
        self._change(old, None)
        self._change(key, position)
        return position

    def replaced(self, key: str) -> str | None:
        """A file no longer holds what was read of it; the new key of its position, None if it had none."""
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
        """A file is gone."""
        position = self._known[key]
        self._change(key, replace(position, gone=int(time.time())))
        self._drop_old(position.stream)

    def take_changes(self) -> dict[str, dict[str, Any] | None]:
        """What batches have not carried yet; it is up to the caller now."""
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
