"""Files that grow, line by line: rotated by renaming, copied and truncated, packed, deleted, begun anew.

The file itself is the buffer: nothing is kept but how far each was read. A log (`stream`) may be several
files at a time, which are read in the order in which they were written. What tells files apart is in
`file_identity`.
"""

from __future__ import annotations

import glob
import logging
import os
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Literal

from ..batch import Batch, Positions
from ..component import Place
from .file_content import Content, Incomplete, open_content
from .file_identity import FilePosition, file_key
from .lines import Multiline
from .rotation import is_rotated, rotation_number, stream_of
from .tailed_file import Replaced, TailedFile

log = logging.getLogger("streamgauge.ingest")

_SCAN_SECONDS = 0.5
_PAUSE_SECONDS = 0.05
_SETTLING_SECONDS = 2.0
"""A rotated file that nobody knows, and that changed so shortly ago, is still being copied or packed."""
_DEFERRED_SECONDS = 5.0
"""For so long a file that may be a copy of one that is being read waits to see whether that one is truncated.
"""
_FINISHED_SECONDS = 60.0
"""A rotated file that has not changed for so long gets no more lines: programs go on writing to it for a
while.
"""
_LISTINGS = 5
"""How often files are listed at most, until two listings agree: a rotation that is under way hides files."""
_GONE_KEPT = 100
_GONE_SECONDS = 30 * 86_400.0
"""Positions of deleted files, a log, that are kept: their packed copies may appear later."""


@dataclass(frozen=True, kw_only=True)
class FileTail:
    """Lines of files that match the patterns `files`, and none of `exclude`; ``**`` stands for any folders.

    Files that are there when the agent starts for the first time are read from the `start`; all others from
    the beginning. A line of more than `max_line` bytes, and the last line of a file as long as it has no
    newline, are no messages. Bytes are sent as they are, without the end of the line.
    """

    files: Sequence[str]
    exclude: Sequence[str] = ()
    start: Literal["beginning", "end"] = "beginning"
    max_line: int = 16 * 1024 * 1024
    multiline: Multiline | None = None

    def __post_init__(self) -> None:
        if isinstance(self.files, str) or not self.files or not all(self.files):
            raise ValueError(
                f'files must be a list of paths or patterns, as in ["/var/log/*.log"], got {self.files!r}'
            )
        if self.max_line < 1:
            raise ValueError(f"max_line must be an integer ≥ 1, got {self.max_line}")

    def open(self, place: Place, positions: Positions) -> TailSource:
        """See `SourceSettings`."""
        return TailSource(self, place, positions)


class TailSource:
    """A `Source` of the lines of files."""

    waited_for = finite = False

    def __init__(self, settings: FileTail, place: Place, positions: Positions) -> None:
        self._settings, self._once = settings, place.once
        self._known = _parsed(positions)
        self._first, self._looked_for_deleted = not self._known, False
        self._streams: dict[str, list[TailedFile]] = {}
        self._finished: dict[str, tuple[int, int]] = {}
        self._first_seen: dict[str, float] = {}
        self._warned: set[str] = set()
        self._changed: dict[str, Mapping[str, Any] | None] = {}
        self._next_scan, self._deferred = 0.0, False
        self._at_end = False
        self._closed: dict[str, int] | None = None

    @property
    def ended(self) -> bool:
        """See `Source`."""
        return self._at_end

    @property
    def unfinished(self) -> dict[str, int]:
        """Bytes behind the last newline, by file; once it is closed, those that there were then."""
        if self._closed is not None:
            return self._closed
        return {str(file.path): file.unread for file in self._open_files() if file.unread}

    def read(self, seconds: float) -> Batch | None:
        """See `Source`."""
        deadline = time.monotonic() + seconds
        while True:
            scanned = time.monotonic() >= self._next_scan
            if scanned:
                self._scan()
                self._next_scan = time.monotonic() + _SCAN_SECONDS
            if (batch := self._next_batch()) is not None:
                self._at_end = False
                return self._with_changes(batch)
            if scanned:
                self._at_end = not self._deferred
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            time.sleep(min(_PAUSE_SECONDS, left))

    def close(self) -> None:
        """See `Source`."""
        self._closed = self.unfinished
        for file in self._open_files():
            file.content.close()
        self._streams = {}

    def _open_files(self) -> Iterator[TailedFile]:
        for files in self._streams.values():
            yield from files

    def _with_changes(self, batch: Batch) -> Batch:
        """With what else has changed: files that were replaced, or are gone."""
        changed, self._changed = self._changed, {}
        return replace(batch, positions={**changed, **batch.positions}) if changed else batch

    # Reading

    def _next_batch(self) -> Batch | None:
        """The next lines of the first log that has any; logs take turns."""
        for stream in list(self._streams):
            for file in list(self._streams[stream]):
                try:
                    batch = self._read_file(file)
                except Replaced:
                    self._replace(file)
                    return self._next_batch()
                if batch is not None:
                    self._streams[stream] = self._streams.pop(stream)
                    return batch
        return None

    def _read_file(self, file: TailedFile) -> Batch | None:
        if file.at_end and not file.changed() and not self._is_finished(file):
            return None
        try:
            batch = file.next(self._is_finished(file), self._once)
        except Incomplete as error:
            self._warn(file.key, "%s: the packed file ends too early, or is damaged: %s", file.path, error)
            self._finish(file)
            return None
        if batch is not None:
            self._known[file.key] = file.position
        elif self._is_finished(file):
            self._finish(file)
        return batch

    def _is_finished(self, file: TailedFile) -> bool:
        """Whether no more will be written to it."""
        if not file.content.growing:
            return True
        status = file.content.status
        if status.st_nlink and self._streams[file.stream][-1] is file:
            return False
        return time.time() - status.st_mtime > _FINISHED_SECONDS

    def _finish(self, file: TailedFile) -> None:
        """Close a file that was read to its end, and know that it was."""
        status = file.content.refresh()
        file.content.close()
        self._streams[file.stream].remove(file)
        if not self._streams[file.stream]:
            del self._streams[file.stream]
        self._finished[file.key] = status.st_size, status.st_mtime_ns
        if not status.st_nlink and file.key in self._known:
            self._leave(file.key)

    def _leave(self, key: str) -> None:
        """A file is gone; its packed copy may still appear, so its position is kept for a while."""
        now = int(time.time())
        position = self._known[key] = replace(self._known[key], gone=now)
        self._changed[key] = position.describe()
        gone = [k for k, p in self._known.items() if p.gone and p.stream == position.stream]
        gone.sort(key=lambda k: self._known[k].gone)
        for at, old in enumerate(gone):
            if at < len(gone) - _GONE_KEPT or now - self._known[old].gone > _GONE_SECONDS:
                del self._known[old]
                self._changed[old] = None

    def _replace(self, file: TailedFile) -> None:
        """A file was truncated or written anew: what is left of the old goes first, then all of the new."""
        position = file.position
        files = self._streams[file.stream]
        self._forget(file.key)
        rest = self._rest_of(position, file.key)
        fresh = self._tailed(file.content, file.key, file.path, file.stream, 0)
        files[files.index(file)] = fresh
        if rest is not None:
            files.insert(files.index(fresh), rest)
        log.info("%s was truncated after %d bytes were read", file.path, position.offset)

    def _forget(self, key: str) -> None:
        self._known.pop(key, None)
        self._changed[key] = None

    # Finding files

    def _scan(self) -> None:
        """Open the files that are new, changed, or not read to their end, the oldest of a log first."""
        self._deferred = False
        opened = {file.key: file for file in self._open_files()}
        candidates, seen = [], self._listed()
        for key, (path, status) in seen.items():
            if (file := opened.get(key)) is not None:
                file.path = path
            elif self._finished.get(key) != (status.st_size, status.st_mtime_ns):
                candidates.append((status.st_mtime_ns, -rotation_number(path), path, key))
        blocked: set[str] = set()
        for _, _, path, key in sorted(candidates):
            stream = self._stream_of(path, key)
            if stream not in blocked and not self._admit(path, key, stream):
                # What was written later to this log waits.
                blocked.add(stream)
                self._deferred = True
        for key in self._finished.keys() - seen.keys():
            del self._finished[key]
            if key in self._known and not self._known[key].gone:
                self._leave(key)
        if not (self._deferred or self._looked_for_deleted):
            self._looked_for_deleted = True
            self._look_for_deleted()
        self._first = False

    def _listed(self) -> dict[str, tuple[Path, os.stat_result]]:
        """The files that match, by key; also those that are renamed while they are listed."""
        listed: dict[str, tuple[Path, os.stat_result]] = {}
        for _ in range(_LISTINGS):
            before = listed.keys() | set()
            now = {}
            for path in self._matching():
                try:
                    status = path.stat()
                except OSError:
                    continue  # it was renamed or deleted meanwhile
                if stat.S_ISREG(status.st_mode):
                    now[file_key(status)] = path, status
            listed |= now
            if before == now.keys():
                break
        return listed

    def _matching(self) -> list[Path]:
        paths = {
            Path(path).absolute()
            for pattern in self._settings.files
            for path in glob.iglob(pattern, recursive=True)  # noqa: PTH207 - patterns are absolute
        }
        return [
            path
            for path in paths
            if not any(fnmatch(str(path), pattern) for pattern in self._settings.exclude)
        ]

    def _stream_of(self, path: Path, key: str) -> str:
        known = self._known.get(key)
        return known.stream if known is not None and not known.gone else stream_of(path)

    def _look_for_deleted(self) -> None:
        """What became of files that were renamed or deleted while no agent ran."""
        opened = {file.key for file in self._open_files()}
        for key, position in list(self._known.items()):
            if position.gone or key in opened or key in self._finished:
                continue
            # Renamed to what no pattern matches, or packed, or deleted.
            if (rest := self._rest_of(position, None)) is not None:
                self._insert(rest)
            else:
                self._leave(key)

    def _admit(self, path: Path, key: str, stream: str) -> bool:
        """Open a file where it must be read on from; False if that can't be said yet."""
        try:
            content = open_content(path)
        except FileNotFoundError:
            return True
        except OSError as error:
            self._warn(str(path), "%s can't be read: %s", path, error.strerror)
            return True
        try:
            key = file_key(content.status)  # by now the path may be another file's
            offset = self._offset_in(content, key, path, stream)
        except Incomplete as error:
            content.close()
            return self._waited_enough(key) and self._refuse_packed(key, path, content, error)
        except BaseException:
            content.close()
            raise
        if offset is None:
            content.close()
            return False
        self._first_seen.pop(key, None)
        self._insert(self._tailed(content, key, path, stream, offset))
        return True

    def _refuse_packed(self, key: str, path: Path, content: Content, error: Incomplete) -> bool:
        self._warn(key, "%s: the packed file ends too early, or is damaged: %s", path, error)
        self._finished[key] = content.status.st_size, content.status.st_mtime_ns
        return True

    def _offset_in(self, content: Content, key: str, path: Path, stream: str) -> int | None:
        """From where a file must be read; None if that can't be said yet."""
        known = self._known.get(key)
        if known is not None:
            if known.is_of(content):
                return known.offset
            # Truncated, or its inode is another file's now.
            self._forget(key)
            if not known.gone and (rest := self._rest_of(known, key)) is not None:
                self._insert(rest)
            return 0
        if is_rotated(path) and any(position.stream == stream for position in self._known.values()):
            if time.time() - content.status.st_mtime < _SETTLING_SECONDS and not self._waited_enough(key):
                return None
            for original, position in list(self._known.items()):
                # The copy of a deleted file is packed; others could be files that begin alike.
                if position.stream != stream or not position.offset or (position.gone and content.growing):
                    continue
                if not position.is_of(content):
                    continue
                if self._is_still(original, position):
                    if not self._waited_enough(key):
                        return None
                    continue
                return position.offset
        if self._first and self._settings.start == "end" and content.growing:
            return _last_line_end(content)
        return 0

    def _is_still(self, key: str, position: FilePosition) -> bool:
        """Whether the file of a position is where it was, with the same content."""
        if position.gone:
            return False
        try:
            path = Path(position.path)
            content = open_content(path)
        except OSError:
            return False
        try:
            return file_key(content.status) == key and position.is_of(content)
        except Incomplete:
            return False
        finally:
            content.close()

    def _waited_enough(self, key: str) -> bool:
        now = time.monotonic()
        return now - self._first_seen.setdefault(key, now) > _DEFERRED_SECONDS

    def _rest_of(self, position: FilePosition, key: str | None) -> TailedFile | None:
        """What is left of a log under another name: renamed, copied or packed; None if nothing."""
        if not position.offset:
            return None
        stream = Path(position.stream)
        opened = {file.key for file in self._open_files()}
        try:
            beside = sorted(path for path in stream.parent.iterdir() if path.name.startswith(stream.name))
        except OSError:
            return None
        for path in beside:
            if not is_rotated(path) and path != Path(position.path):
                continue
            try:
                content = open_content(path)
            except OSError:
                continue
            own = file_key(content.status)
            try:
                taken = (
                    own == key
                    or own in opened
                    or (own in self._known and self._known[own].path != position.path)
                )
                if not taken and position.is_of(content):
                    self._known[own] = replace(position, path=str(path))
                    return self._tailed(content, own, path, position.stream, position.offset)
            except Incomplete:
                pass
            content.close()
        return None

    def _tailed(self, content: Content, key: str, path: Path, stream: str, offset: int) -> TailedFile:
        settings = self._settings
        return TailedFile(content, key, path, stream, offset, settings.max_line, settings.multiline)

    def _insert(self, file: TailedFile) -> None:
        """Among the files of its log, by when they were written last."""
        files = self._streams.setdefault(file.stream, [])
        files.append(file)
        files.sort(key=lambda one: (one.content.refresh().st_mtime_ns, -rotation_number(one.path)))

    def _warn(self, key: str, text: str, *values: object) -> None:
        if key not in self._warned:
            self._warned.add(key)
            log.warning(text, *values)


def _parsed(positions: Positions) -> dict[str, FilePosition]:
    """Positions by file; other parts of a source's positions are left out."""
    return {
        key: FilePosition.parse(position)
        for key, position in positions.items()
        if position and "head" in position
    }


def _last_line_end(content: Content) -> int:
    """The offset behind a file's last newline."""
    at = content.status.st_size
    while at > 0:
        size = min(at, 65_536)
        newline = content.read(at - size, size).rfind(b"\n")
        if newline >= 0:
            return at - size + newline + 1
        at -= size
    return 0
