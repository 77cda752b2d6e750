"""Follow growing files line by line, through renaming, copy-truncate, compression, deletion and recreation.

The file itself is the buffer: only the position in each file is stored. A log (`stream`) may consist of
several files at a time, which are read in the order in which they were written. `file_identity` distinguishes
files, and `_offset_in` decides where to begin in a new file: not at its beginning if it is a copy of a file
already read. While the first files of a log can't be read yet, later ones wait.
"""

from __future__ import annotations

import errno
import glob
import logging
import os
import resource
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Literal

from ....sketches.core.errors import StreamgaugeError
from ..batch import Batch, Positions
from ..component import Place
from .file_content import Content, Incomplete, PlainContent, open_content
from .file_identity import SPAN, FilePosition, file_key
from .lines import LongLines, Multiline
from .rotation import is_rotated, numbered_ages, rotation_number, stream_of
from .tail_positions import TailPositions
from .tailed_file import Replaced, TailedFile

log = logging.getLogger("streamgauge.ingest")

_SCAN_SECONDS = 0.5
_PAUSE_SECONDS = 0.05
_PACKING_SECONDS = 5.0
"""How long a compressed file that ends too early may still be in the process of being written."""
_FINISHED_SECONDS = 60.0
"""A rotated file unchanged for this long gets no more lines; until then programs may still write to it.
"""
_COPYING_SECONDS = 5.0
"""A file is truncated within this time after its copy has reached its final size."""
_LISTINGS = 5
"""The most listings of files until two agree, because a rotation in progress hides files."""

_Order = tuple[bool, int, int]
_Listing = dict[str, tuple[Path, os.stat_result]]


class _NotYet(StreamgaugeError):
    """Where to begin in a file can't be determined yet; `holds` says that later files of its log must
    wait."""

    def __init__(self, holds: bool) -> None:
        self.holds = holds


@dataclass(frozen=True, kw_only=True)
class FileTail:
    """Lines of files that match the patterns `files`, and none of `exclude`; ``**`` stands for any folders.

    Files that exist when the agent starts for the first time are read from `start` on; all others from the
    beginning. The last line of a file is not a message until it has a newline. A line of more than `max_line`
    bytes becomes a dead letter, or with ``long_lines="pieces"`` several messages of that size. Bytes are sent
    unchanged, without the line ending.
    """

    files: Sequence[str]
    exclude: Sequence[str] = ()
    start: Literal["beginning", "end"] = "beginning"
    max_line: int = 16 * 1024 * 1024
    long_lines: LongLines = "dead_letter"
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
        self._positions = TailPositions(positions)
        self._first = not len(self._positions)
        self._streams: dict[str, list[TailedFile]] = {}
        self._finished: dict[str, tuple[int, int]] = {}
        # By log: the latest order of the files that may be read now.
        self._held: dict[str, _Order] = {}
        # The order of rotated files with numbers.
        self._ages: dict[str, tuple[int, int]] = {}
        # Positions whose files are searched, even under names outside the patterns.
        self._missing = {key for key, position in self._positions.items() if not position.gone}
        self._first_seen: dict[str, float] = {}
        # By file: its size, and since when it has been this size.
        self._unchanged: dict[str, tuple[int, float]] = {}
        self._warned: set[str] = set()
        self._next_scan, self._deferred = 0.0, False
        self._at_end = False
        # Half of the process's descriptors are for other purposes. If there are more files, they take turns.
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self._most_open = max(soft // 2, 1) if soft != resource.RLIM_INFINITY else 1_000_000
        self._full = False
        self._current: TailedFile | None = None
        # Files closed at their end: path, and bytes after the last line. By log: the time of its last turn.
        self._resting: dict[str, tuple[Path, int]] = {}
        self._turns: dict[str, float] = {}
        # Files that existed at the first start and have not been opened.
        self._from_end: set[str] = set()
        self._closed: dict[str, int] | None = None

    @property
    def ended(self) -> bool:
        """See `Source`."""
        return self._at_end

    @property
    def unfinished(self) -> dict[str, int]:
        """Bytes after the last newline, by file; for a closed file, as of its closing."""
        if self._closed is not None:
            return self._closed
        unread = [(file.path, file.unread) for file in self._open_files()]
        return {str(path): size for path, size in [*self._resting.values(), *unread] if size}

    def read(self, seconds: float) -> Batch | None:
        """See `Source`."""
        deadline = time.monotonic() + seconds
        while True:
            scanned = time.monotonic() >= self._next_scan
            if scanned:
                self._scan()
            if (batch := self._next_batch()) is not None:
                self._at_end = False
                changed = self._positions.take_changes()
                return replace(batch, positions={**changed, **batch.positions}) if changed else batch
            if scanned:
                self._at_end = not self._deferred
            if self._full:
                self._next_scan = 0.0
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

    # Reading

    def _next_batch(self) -> Batch | None:
        """Return the next lines of the first log that has any; logs take turns."""
        for stream in list(self._streams):
            for file in list(self._streams[stream]):
                if self._waits(file):
                    break
                try:
                    first = not file.offset
                    batch = self._read_file(file)
                except Replaced:
                    log.info("%s was truncated after %d bytes were read", file.path, file.offset)
                    self._content_replaced(file.key)
                    self._read_anew(file)
                    self._scan()
                    return self._next_batch()
                if batch is None:
                    continue
                if first and self._has_new_before(file):
                    self._read_anew(file)
                    return self._next_batch()
                self._positions.read_to(file.key, file.position)
                file.had_turn = True
                self._streams[stream] = self._streams.pop(stream)
                return batch
        return None

    def _waits(self, file: TailedFile) -> bool:
        """Whether files that were written before this one can't be read yet."""
        held = self._held.get(file.stream)
        return held is not None and self._order(file.path, file.key, file.content.status) > held

    def _order(self, path: Path, key: str, status: os.stat_result) -> _Order:
        """Return the order of a log's file by its time of writing; the current file is last in any case."""
        # A deleted file's path belongs to another file.
        if not is_rotated(path) and status.st_nlink > 0:
            return True, status.st_mtime_ns, 0
        return False, *self._ages.get(key, (status.st_mtime_ns, -rotation_number(path)))

    def _has_new_before(self, file: TailedFile) -> bool:
        """Whether there are new files that come before a file that is read for the first time.

        Its content may have been copied and truncated since files were listed, without a trace. Rotated files
        are not truncated.
        """
        if is_rotated(file.path):
            return False
        known = set(self._streams[file.stream])
        self._current = file
        self._scan()
        self._current = None
        files = self._streams[file.stream]
        return self._waits(file) or not known.issuperset(files[: files.index(file)])

    def _read_file(self, file: TailedFile) -> Batch | None:
        if file.at_end and not file.changed() and not self._is_finished(file):
            return None
        try:
            batch = file.next(self._is_finished(file), self._once)
        except Incomplete as error:
            self._warn(file.key, "%s: the compressed file is truncated or damaged: %s", file.path, error)
            self._finish(file)
            return None
        if batch is None and self._is_finished(file):
            self._finish(file)
        return batch

    def _is_finished(self, file: TailedFile) -> bool:
        """Whether nothing more will be written to a file."""
        if not file.content.growing:
            return True
        status = file.content.status
        if status.st_nlink and self._streams[file.stream][-1] is file:
            return False
        return time.time() - status.st_mtime > _FINISHED_SECONDS

    def _finish(self, file: TailedFile) -> None:
        """Close a file that was read to its end, and record that."""
        status = file.content.refresh()
        file.content.close()
        self._streams[file.stream].remove(file)
        if not self._streams[file.stream]:
            del self._streams[file.stream]
        self._finished[file.key] = status.st_size, status.st_mtime_ns
        if not status.st_nlink and file.key in self._positions:
            self._positions.leave(file.key)

    def _make_room(self, waited_for: dict[str, _Order]) -> bool:
        """If too many files are open, close those at their end, else those that had a turn or can't have one.

        `waited_for` has the first files to open of each log, for which later files wait.
        """
        if self._count_open() < self._most_open:
            return True
        if self._full:
            return False
        for file in list(self._open_files()):
            if file.rests() and file is not self._current and not self._may_end_in_a_line(file):
                status = file.content.status
                self._close(file)
                self._finished[file.key] = status.st_size, status.st_mtime_ns
                self._resting[file.key] = file.path, file.unread
        if self._count_open() >= self._most_open:
            for file in list(self._open_files()):
                order = self._order(file.path, file.key, file.content.status)
                late = file.stream in waited_for and order > waited_for[file.stream]
                if file is self._current or file.waits or not (file.had_turn or late):
                    continue
                self._close(file)
                # It is opened again after the next listing; until then, later files wait.
                self._finished[file.key] = -1, -1
                self._deferred = True
                self._held[file.stream] = min(order, self._held.get(file.stream, order))
                self._turns[file.stream] = time.monotonic()
        self._full = self._count_open() >= self._most_open
        return not self._full

    def _count_open(self) -> int:
        return sum(map(len, self._streams.values()))

    def _may_end_in_a_line(self, file: TailedFile) -> bool:
        """Whether it will only be known later that the bytes after the last newline are a line."""
        alone = len(self._streams[file.stream]) == 1 and file.stream not in self._held
        return file.unread > 0 and is_rotated(file.path) and not alone

    def _close(self, file: TailedFile) -> None:
        """Close a file that is reopened later at its position."""
        if file.offset:
            self._positions.read_to(file.key, file.position)
        file.content.close()
        self._streams[file.stream].remove(file)
        if not self._streams[file.stream]:
            del self._streams[file.stream]

    def _read_anew(self, file: TailedFile) -> None:
        files = self._streams[file.stream]
        files[files.index(file)] = self._tailed(file.content, file.key, file.path, file.stream, 0)

    def _content_replaced(self, key: str) -> None:
        if (other := self._positions.replaced(key)) is not None:
            self._missing.add(other)

    # Finding files

    def _scan(self) -> None:
        """Open files that are new, changed, or not read to their end, the oldest of a log first."""
        self._next_scan = time.monotonic() + _SCAN_SECONDS
        self._deferred, self._full, self._held = False, False, {}
        listed = _list_files(self._matching)
        self._ages = numbered_ages((key, path, status.st_mtime_ns) for key, (path, status) in listed.items())
        opened = {file.key: file for file in self._open_files()}
        candidates = []
        for key, (path, status) in listed.items():
            if (file := opened.get(key)) is not None:
                file.path = path
            elif self._finished.get(key) != (status.st_size, status.st_mtime_ns):
                stream = self._stream_of(path, key)
                order = self._order(path, key, status)
                candidates.append((self._turns.get(stream, 0.0), order, path, key, stream))
        if self._first and self._settings.start == "end":
            self._from_end = set(listed)
        self._from_end &= listed.keys()
        waited_for: dict[str, _Order] = {}
        for _, order, _, _, stream in candidates:
            waited_for[stream] = min(order, waited_for.get(stream, order))
        for _, order, path, key, stream in sorted(candidates):
            if stream in self._held:
                continue
            waited_for[stream] = order
            try:
                if not self._make_room(waited_for):
                    raise _NotYet(holds=True)
                self._open(path, key, stream, listed)
                del waited_for[stream]
            except _NotYet as why:
                self._deferred |= why.holds or not self._once
                if why.holds:
                    self._held[stream] = min(order, self._held.get(stream, order))
        self._look_for_missing(listed)
        for files in self._streams.values():
            files.sort(key=lambda file: self._order(file.path, file.key, file.content.refresh()))
        self._first = False

    def _matching(self) -> Iterable[Path]:
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
        known = self._positions.get(key)
        return known.stream if known is not None and not known.gone else stream_of(path)

    def _open(self, path: Path, key: str, stream: str, listed: _Listing) -> None:
        """Open a file at the position to resume from. Raises `_NotYet`."""
        try:
            content = open_content(path)
        except FileNotFoundError:
            raise self._listed_too_early() from None
        except OSError as error:
            self._warn(str(path), "%s can't be read: %s", path, error.strerror)
            if error.errno in (errno.EMFILE, errno.ENFILE):
                raise _NotYet(holds=True) from None
            return
        try:
            if file_key(content.status) != key:
                raise self._listed_too_early()
            offset = self._offset_in(content, key, path, stream, listed)
        except Incomplete as error:
            content.close()
            self._wait_for_packing(key)
            self._warn(key, "%s: the compressed file is truncated or damaged: %s", path, error)
            self._finished[key] = content.status.st_size, content.status.st_mtime_ns
            return
        except BaseException:
            content.close()
            raise
        self._first_seen.pop(key, None)
        self._unchanged.pop(key, None)
        self._resting.pop(key, None)
        self._from_end.discard(key)
        self._insert(self._tailed(content, key, path, stream, offset))

    def _listed_too_early(self) -> _NotYet:
        """Note that the path belongs to another file by now; later files wait for the next listing."""
        self._next_scan = 0.0
        return _NotYet(holds=True)

    def _wait_for_packing(self, key: str) -> None:
        now = time.monotonic()
        if now - self._first_seen.setdefault(key, now) <= _PACKING_SECONDS:
            raise _NotYet(holds=True)

    def _offset_in(self, content: Content, key: str, path: Path, stream: str, listed: _Listing) -> int:
        """Return the offset from which a file must be read."""
        known = self._positions.get(key)
        if known is not None:
            if known.is_of(content):
                return known.offset
            # Truncated, or the inode belongs to another file now.
            self._content_replaced(key)
        if is_rotated(path):
            original = self._original_of(content, key, path, stream, listed)
            if original is not None and (not content.growing or self._was_read(original, listed)):
                # If the other file is truncated, reading continues here; if it is deleted, after it is read
                # to its end.
                raise _NotYet(holds=False)
            if original is not None and self._may_be_copied_now(content, key):
                # A copy is newer than its content: read the other file, not the copy.
                other = listed.get(original)
                later = other is not None and content.status.st_mtime_ns > other[1].st_mtime_ns
                raise _NotYet(holds=not later)
            for old, position in self._positions.of_stream(stream):
                # A deleted file's copy is compressed; other files might merely have the same beginning.
                if position.gone and content.growing and not position.replaced:
                    continue
                if position.is_of(content) and not self._is_still_in(old, position, listed):
                    return self._positions.move(old, key, str(path)).offset
        if key in self._from_end and content.growing:
            return _last_line_end(content)
        return 0

    def _was_read(self, key: str, listed: _Listing) -> bool:
        """Whether part of a file was read and is still in it."""
        if any(file.key == key and file.offset for file in self._open_files()):
            return True
        position = self._positions.get(key)
        return position is not None and self._is_still_in(key, position, listed)

    def _may_be_copied_now(self, content: Content, key: str) -> bool:
        """Whether a file with the same beginning as another may be its copy, before a truncation.

        Otherwise it is a separate file: programs begin many files with the same lines.
        """
        status = content.refresh()
        if time.time() - status.st_mtime > _FINISHED_SECONDS:
            return False
        now = time.monotonic()
        size, since = self._unchanged.get(key, (-1, now))
        if size != status.st_size:
            self._unchanged[key] = status.st_size, now
            return True
        return now - since < _COPYING_SECONDS

    def _is_still_in(self, key: str, position: FilePosition, listed: _Listing) -> bool:
        """Whether the file that was read up to a position exists and contains what was read."""
        if key not in listed:
            return False
        try:
            content = open_content(listed[key][0])
        except FileNotFoundError:
            raise self._listed_too_early() from None
        except OSError:
            return True  # an unreadable file may contain it
        try:
            if file_key(content.status) != key:
                raise self._listed_too_early()
            return position.is_of(content)
        except Incomplete:
            return False
        finally:
            content.close()

    def _original_of(
        self, content: Content, key: str, path: Path, stream: str, listed: _Listing
    ) -> str | None:
        """Return the key of another file of the log that contains all of a rotated file, which may be a copy.

        Files are copied before they are truncated, and compressed before they are deleted.
        """
        original = Path(stream) if content.growing else path.with_suffix("")
        for file in self._streams.get(stream, ()):
            if file.key == key or not file.content.growing:
                continue
            if (file.path == original or not file.content.refresh().st_nlink) and _is_beginning(
                content, file.content
            ):
                return file.key
        try:
            beside = PlainContent(original)
        except OSError:
            return None
        try:
            other = file_key(beside.status)
            return other if other != key and other in listed and _is_beginning(content, beside) else None
        finally:
            beside.close()

    def _look_for_missing(self, listed: _Listing) -> None:
        """Find files that were renamed, copied, compressed or deleted."""
        opened = {file.key for file in self._open_files()}
        for key in self._finished.keys() - listed.keys():
            del self._finished[key]
            self._resting.pop(key, None)
            if key in self._positions:
                self._missing.add(key)
        for key in list(self._missing):
            position = self._positions.get(key)
            if position is None or key in listed or key in opened:
                self._missing.discard(key)
            elif position.stream not in self._held:
                self._missing.discard(key)
                # Renamed to a name that no pattern matches, or compressed, or deleted.
                if not (position.offset and self._read_on_beside(key, listed)) and not position.gone:
                    self._positions.leave(key)

    def _read_on_beside(self, missing: str, listed: _Listing) -> bool:
        """Open the rest of a file, if any, under a name that no pattern matches."""
        position = self._positions.get(missing)
        assert position is not None
        stream = Path(position.stream)

        def beside() -> Iterable[Path]:
            try:
                paths = list(stream.parent.iterdir())
            except OSError:
                return []
            return [path for path in paths if is_rotated(path) and stream_of(path) == position.stream]

        for key, (path, _) in _list_files(beside).items():
            if key in listed or (key in self._positions and key != missing):
                continue
            try:
                content = open_content(path)
            except OSError:
                continue
            try:
                if file_key(content.status) == key and position.is_of(content):
                    if key != missing:
                        self._positions.move(missing, key, str(path))
                    self._insert(self._tailed(content, key, path, position.stream, position.offset))
                    return True
            except Incomplete:
                pass
            content.close()
        return False

    def _tailed(self, content: Content, key: str, path: Path, stream: str, offset: int) -> TailedFile:
        settings = self._settings
        pieces = settings.long_lines == "pieces"
        return TailedFile(content, key, path, stream, offset, settings.max_line, settings.multiline, pieces)

    def _insert(self, file: TailedFile) -> None:
        self._streams.setdefault(file.stream, []).append(file)

    def _warn(self, key: str, text: str, *values: object) -> None:
        if key not in self._warned:
            self._warned.add(key)
            log.warning(text, *values)


def _list_files(matching: Callable[[], Iterable[Path]]) -> _Listing:
    """Return the files at the paths from `matching`, by key, including files renamed meanwhile."""
    listed: _Listing = {}
    for _ in range(_LISTINGS):
        before = set(listed)
        now = {}
        for path in matching():
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


def _is_beginning(content: Content, original: Content) -> bool:
    """Whether a file, which may be incomplete, equals the beginning of another one.

    Raises `Incomplete`.
    """
    if content.growing:
        size = content.refresh().st_size
        span = min(size, SPAN)
        places = [0, size - span]
    else:
        # The uncompressed size of a compressed file is only known at its end.
        span, places = SPAN, [0]
    return all(original.read(at, span).startswith(content.read(at, span)) for at in places)


def _last_line_end(content: Content) -> int:
    """Return the offset after a file's last newline."""
    at = content.status.st_size
    while at > 0:
        size = min(at, 65_536)
        newline = content.read(at - size, size).rfind(b"\n")
        if newline >= 0:
            return at - size + newline + 1
        at -= size
    return 0
