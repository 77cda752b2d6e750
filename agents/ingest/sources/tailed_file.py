"""One open file of a tail: its next lines, and its position."""

from __future__ import annotations

import logging
import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from ....sketches.core.errors import StreamgaugeError
from ..batch import Batch, DeadLine
from .file_content import Content
from .file_identity import SPAN, FilePosition
from .lines import Multiline, split_lines

log = logging.getLogger("streamgauge.ingest")

BLOCK = 4 * 1024 * 1024
"""The number of bytes read at once."""
_SHOWN = 100_000
"""The number of bytes of an oversized line that a dead letter contains."""
_NULS = "a run of NULs"
_COMPLETE_SECONDS = 2.0
"""If a file's last change is older than this, no later change can have the same timestamp.
"""

_Look = tuple[int, int, int]


class Replaced(StreamgaugeError):
    """The file no longer contains the bytes that were read: it was truncated or rewritten."""


class TailedFile:
    """Continues reading at `offset`, the offset of `position`; `head` and `tail` are the bytes that must
    still
    be there.
    """

    def __init__(
        self,
        content: Content,
        key: str,
        path: Path,
        stream: str,
        offset: int,
        longest: int,
        multiline: Multiline | None = None,
        pieces: bool = False,
    ) -> None:
        self.content, self.key, self.path, self.stream = content, key, path, stream
        self.offset = offset
        self.at_end = False
        self.had_turn = False
        self._longest, self._multiline, self._pieces = longest, multiline, pieces
        size = min(offset, SPAN)
        self._head, self._tail = content.read(0, size), content.read(offset - size, size)
        # The bytes read of an oversized line, the number of NULs at the file's beginning, and since when a
        # message of several lines has been waiting.
        self._searched = 0
        self._nuls = 0
        self._waiting: tuple[int, float] | None = None
        self._seen: _Look | None = None

    @property
    def position(self) -> FilePosition:
        """The position up to which the file was read."""
        return FilePosition.of(str(self.path), self.stream, self.offset, self._head, self._tail)

    @property
    def unread(self) -> int:
        """The number of bytes after the last complete line."""
        return max(self.content.status.st_size - self.offset, 0) if self.content.growing else 0

    def changed(self) -> bool:
        """Whether the file may have changed since it was read to its end."""
        look = _look(self.content.refresh())
        if self._waiting is not None or look != self._seen:
            return True
        # A second change within the same tick of the clock would not be visible.
        return self.content.growing and time.time() - look[1] / 1e9 < _COMPLETE_SECONDS

    @property
    def waits(self) -> bool:
        """Whether a message of several lines may get more lines."""
        return self._waiting is not None

    def rests(self) -> bool:
        """Whether the file was read to its end, and nothing is pending."""
        return self.at_end and not self.waits and _look(self.content.refresh()) == self._seen

    def next(self, finished: bool, whole: bool = False) -> Batch | None:
        """Return the next lines; None at the end.

        `finished` says that the file is complete, so that the bytes after the last newline are a line as
        well; `whole` that the last message of several lines is complete. Raises `Replaced`, `Incomplete` and
        `OSError`.

        NULs at the beginning are left out and counted: a program that doesn't open its log for appending
        continues at its old offset after a truncation, and leaves a hole before it.
        """
        nuls = 0 if self.offset else self._count_nuls()
        if not nuls:
            return self._next(finished, whole)
        self._head = self._tail = bytes(min(nuls, SPAN))
        self.offset = nuls
        batch = self._next(finished, whole)
        if batch is None and finished:
            none = np.zeros(0, np.int64)
            batch = self._batch(np.zeros(0, np.uint8), none, none, [])
        if batch is None:
            # They are counted with the first line after them.
            self.offset, self._head, self._tail = 0, b"", b""
            return None
        log.warning(
            "%s begins with %d NULs, which are skipped; let its writer open it for appending", self.path, nuls
        )
        return replace(batch, dropped={**batch.dropped, _NULS: 1})

    def _count_nuls(self) -> int:
        if self.content.read(0, 1) != b"\0":
            return 0
        # The NULs counted before still exist unless the file was truncated.
        at = self._nuls if self._nuls and self.content.read(self._nuls - 1, 1) == b"\0" else 0
        while (data := self.content.read(at, BLOCK)) and not data.strip(b"\0"):
            at += len(data)
        self._nuls = at + len(data) - len(data.lstrip(b"\0"))
        return self._nuls

    def _next(self, finished: bool, whole: bool) -> Batch | None:
        whole = whole or finished
        look = _look(self.content.refresh())
        size = BLOCK
        while True:
            data = self._read(size)
            end = data.rfind(b"\n", len(self._tail)) + 1 - len(self._tail)
            count = len(data) - len(self._tail)
            if end <= 0 and count == size and size <= self._longest:
                size *= 4
                continue
            block = np.frombuffer(data, np.uint8, offset=len(self._tail))
            batch = None
            if end > 0:
                batch = self._lines(block[:end], whole, look)
                if batch is None and self._multiline and count == size and size <= self._longest:
                    size *= 4  # a message of many lines
                    continue
                if batch is None and self._multiline and count == size:
                    batch = self._lines(block[:end], True, look)
            elif count > self._longest + 1 and self._pieces:
                # Part of it is left for the line's end, so that no piece is empty.
                end = (count - 2) // self._longest * self._longest
                batch = self._advance(block[:end], np.zeros(1, np.int64), np.array([end]))
            elif count > self._longest and not self._pieces:
                batch = self._long_line(block, finished)
            elif count and finished:
                batch = self._advance(block, np.zeros(1, np.int64), np.array([count]))
            break
        self.at_end = batch is None
        if batch is None:
            self._seen = look
        return batch

    def _read(self, size: int) -> bytes:
        """Read the known bytes before the offset, then at most `size` new ones."""
        data = self.content.read(self.offset - len(self._tail), len(self._tail) + size)
        if self.content.growing:
            # The first bytes are compared last, to detect a file that is replaced in between.
            head = self.content.read(0, len(self._head))
            if head != self._head or not data.startswith(self._tail):
                raise Replaced
        return data

    def _lines(self, block: np.ndarray, whole: bool, look: _Look) -> Batch | None:
        starts, lengths = split_lines(block)
        if self._multiline is None:
            return self._advance(block, starts, lengths)
        firsts = np.flatnonzero(self._multiline.begins(block, starts, lengths))
        if not whole and not self._is_complete(look[0]):
            end = int(starts[firsts[-1]])
            if end == 0:
                return None
            block, firsts = block[:end], firsts[:-1]
            last = int(np.searchsorted(starts, end)) - 1
        else:
            last = len(starts) - 1
        self._waiting = None
        lasts = np.append(firsts[1:] - 1, last)
        return self._advance(block, starts[firsts], starts[lasts] + lengths[lasts] - starts[firsts])

    def _is_complete(self, size: int) -> bool:
        """Whether a message of several lines has waited long enough for more."""
        assert self._multiline is not None
        now = time.monotonic()
        if self._waiting is None or self._waiting[0] != size:
            self._waiting = size, now
        return now - self._waiting[1] >= self._multiline.seconds

    def _long_line(self, block: np.ndarray, whole: bool) -> Batch | None:
        """Return an oversized line as a dead letter, once its end is there."""
        at = max(self._searched, self.offset + len(block))
        while True:
            data = self.content.read(at, BLOCK)
            end = data.find(b"\n")
            if end >= 0 or (not data and whole):
                break
            if not data:
                self._searched = at
                return None
            at += len(data)
        self._searched = 0
        size = at + max(end, 0) - self.offset
        reason = f"a line of {size} bytes, above the limit of {self._longest}"
        none = np.zeros(0, np.int64)
        dead = DeadLine(reason, block[:_SHOWN].tobytes())
        self.offset += size + (end >= 0)
        span = min(self.offset, SPAN)
        self._head, self._tail = self.content.read(0, span), self.content.read(self.offset - span, span)
        return self._batch(np.zeros(0, np.uint8), none, none, [dead])

    def _advance(self, block: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> Batch:
        """Advance the position past `block`."""
        if len(self._head) < SPAN:
            self._head += block[: SPAN - len(self._head)].tobytes()
        self._tail = (self._tail + block[-SPAN:].tobytes())[-SPAN:]
        self.offset += len(block)
        batch = self._batch(block, starts, lengths, [])
        return batch.in_pieces(self._longest) if self._pieces else batch.without_long(self._longest, _SHOWN)

    def _batch(
        self, block: np.ndarray, starts: np.ndarray, lengths: np.ndarray, dead: list[DeadLine]
    ) -> Batch:
        positions = {self.key: self.position.describe()}
        return Batch(block, starts, lengths, self.stream, dead=dead, positions=positions)


def _look(status: os.stat_result) -> _Look:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns
