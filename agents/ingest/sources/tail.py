"""Files that grow, line by line: rotated by renaming, copied and truncated, packed, deleted, begun anew.

The file itself is the buffer: nothing is kept but how far each was read. A log (`stream`) may be several
files at a time, which are read in the order in which they were written. What tells files apart is in
`file_identity`, and where a file that nobody has seen is read from in `_offset_in`: not from its beginning if
it is the copy of one that was read. While the first files of a log can't be read yet, later ones wait.
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
from .rotation import is_rotated, rotation_number, stream_of
from .tail_positions import TailPositions
from .tailed_file import Replaced, TailedFile

log = logging.getLogger("streamgauge.ingest")

_SCAN_SECONDS = 0.5
_PAUSE_SECONDS = 0.05
_PACKING_SECONDS = 5.0
"""For so long a packed file that ends too early may still be being written."""
_FINISHED_SECONDS = 60.0
"""A rotated file that has not changed for so long gets no more lines: programs go on writing to it for a
while.
"""
_COPYING_SECONDS = 5.0
"""A file is truncated within this time after its copy has its last size."""
_LISTINGS = 5
"""How often files are listed at most, until two listings agree: a rotation that is under way hides files."""

_Order = tuple[bool, int, int]
_Listing = dict[str, tuple[Path, os.stat_result]]


class _NotYet(StreamgaugeError):
    """From where a file must be read can't be said yet; `holds` says that later files of its log wait."""

    def __init__(self, holds: bool) -> None:
        self.holds = holds


@dataclass(frozen=True, kw_only=True)
class FileTail:
    """Lines of files that match the patterns `files`, and none of `exclude`; ``**`` stands for any folders.

    Files that are there when the agent starts for the first time are read from the `start`; all others from
    the beginning. The last line of a file is no message as long as it has no newline. A line of more than
    `max_line` bytes is a dead letter, or with ``long_lines="pieces"`` several messages of as many bytes.
    Bytes are sent as they are, without the end of the line.
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
        # By log: how late a file may have been written that is read now.
        self._held: dict[str, _Order] = {}
        # Positions whose files are looked for, also beside the patterns.
        self._missing = {key for key, position in self._positions.items() if not position.gone}
        self._first_seen: dict[str, float] = {}
        # By file: its size, and since when it has had it.
        self._unchanged: dict[str, tuple[int, float]] = {}
        self._warned: set[str] = set()
        self._next_scan, self._deferred = 0.0, False
        self._at_end = False
        # Half of the process's descriptors are for other things. If there are more files, they take turns.
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self._most_open = max(soft // 2, 1) if soft != resource.RLIM_INFINITY else 1_000_000
        self._full = False
        self._current: TailedFile | None = None
        # Files closed at their end: path, and bytes behind the last line. By log: when it had its last turn.
        self._resting: dict[str, tuple[Path, int]] = {}
        self._turns: dict[str, float] = {}
        # Files that were there at the first start, and have not been opened.
        self._from_end: set[str] = set()
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
        """The next lines of the first log that has any; logs take turns."""
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
        """Whether files that were written before it can't be read yet."""
        held = self._held.get(file.stream)
        return held is not None and _order(file.path, file.content.status) > held

    def _has_new_before(self, file: TailedFile) -> bool:
        """Whether there are files that come before one of which something was read for the first time.

        What was in it may have been copied and truncated since files were listed, and nothing of it shows
        that. Files that were rotated are not truncated.
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
        if not status.st_nlink and file.key in self._positions:
            self._positions.leave(file.key)

    def _make_room(self, waited_for: dict[str, _Order]) -> bool:
        """If too many files are open, close those at their end, else those that had a turn or can't have one.

        `waited_for` are the first files to open of each log: files that come later wait for them.
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
                order = _order(file.path, file.content.status)
                late = file.stream in waited_for and order > waited_for[file.stream]
                if file is self._current or file.waits or not (file.had_turn or late):
                    continue
                self._close(file)
                # It is opened again when files are listed next; until then later ones wait.
                self._finished[file.key] = -1, -1
                self._deferred = True
                self._held[file.stream] = min(order, self._held.get(file.stream, order))
                self._turns[file.stream] = time.monotonic()
        self._full = self._count_open() >= self._most_open
        return not self._full

    def _count_open(self) -> int:
        return sum(map(len, self._streams.values()))

    def _may_end_in_a_line(self, file: TailedFile) -> bool:
        """Whether it is known only later that what is behind its last newline is a line."""
        alone = len(self._streams[file.stream]) == 1 and file.stream not in self._held
        return file.unread > 0 and is_rotated(file.path) and not alone

    def _close(self, file: TailedFile) -> None:
        """Close a file that is opened again later where it was read to."""
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
        """Open the files that are new, changed, or not read to their end, the oldest of a log first."""
        self._next_scan = time.monotonic() + _SCAN_SECONDS
        self._deferred, self._full, self._held = False, False, {}
        listed = _list_files(self._matching)
        opened = {file.key: file for file in self._open_files()}
        candidates = []
        for key, (path, status) in listed.items():
            if (file := opened.get(key)) is not None:
                file.path = path
            elif self._finished.get(key) != (status.st_size, status.st_mtime_ns):
                stream = self._stream_of(path, key)
                candidates.append((self._turns.get(stream, 0.0), _order(path, status), path, key, stream))
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
            files.sort(key=lambda file: _order(file.path, file.content.refresh()))
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
        """Open a file where it must be read on from. Raises `_NotYet`."""
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
        """The path is another file's by now; until files are listed again, later ones wait."""
        self._next_scan = 0.0
        return _NotYet(holds=True)

    def _wait_for_packing(self, key: str) -> None:
        now = time.monotonic()
        if now - self._first_seen.setdefault(key, now) <= _PACKING_SECONDS:
            raise _NotYet(holds=True)

    def _offset_in(self, content: Content, key: str, path: Path, stream: str, listed: _Listing) -> int:
        """From where a file must be read."""
        known = self._positions.get(key)
        if known is not None:
            if known.is_of(content):
                return known.offset
            # Truncated, or its inode is another file's now.
            self._content_replaced(key)
        if is_rotated(path):
            original = self._original_of(content, key, path, stream, listed)
            if original is not None and (not content.growing or self._was_read(original, listed)):
                # If the other is truncated it is read on here; if it is deleted, once it is read to its end.
                raise _NotYet(holds=False)
            if original is not None and self._may_be_copied_now(content, key):
                # A copy is written later than what is in it: the other file is read, and not the copy.
                other = listed.get(original)
                later = other is not None and content.status.st_mtime_ns > other[1].st_mtime_ns
                raise _NotYet(holds=not later)
            for old, position in self._positions.of_stream(stream):
                # Of a deleted file the copy is packed; others could be files that begin alike.
                if position.gone and content.growing and not position.replaced:
                    continue
                if position.is_of(content) and not self._is_still_in(old, position, listed):
                    return self._positions.move(old, key, str(path)).offset
        if key in self._from_end and content.growing:
            return _last_line_end(content)
        return 0

    def _was_read(self, key: str, listed: _Listing) -> bool:
        """Whether something of a file was read, which it still holds."""
        if any(file.key == key and file.offset for file in self._open_files()):
            return True
        position = self._positions.get(key)
        return position is not None and self._is_still_in(key, position, listed)

    def _may_be_copied_now(self, content: Content, key: str) -> bool:
        """Whether a file that begins like another one may be its copy, which is truncated next.

        Otherwise it is a file of its own: programs begin many files with the same lines.
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
        """Whether the file that was read up to a position is there, and holds what was read."""
        if key not in listed:
            return False
        try:
            content = open_content(listed[key][0])
        except FileNotFoundError:
            raise self._listed_too_early() from None
        except OSError:
            return True  # a file that can't be read may hold it
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
        """The key of another file of its log that holds all of a rotated file, which may be its copy.

        Files are copied before they are truncated, and packed before they are deleted.
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
        """What became of files that were renamed, copied, packed or deleted."""
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
                # Renamed to what no pattern matches, or packed, or deleted.
                if not (position.offset and self._read_on_beside(key, listed)) and not position.gone:
                    self._positions.leave(key)

    def _read_on_beside(self, missing: str, listed: _Listing) -> bool:
        """Open what is left of a file under a name that no pattern matches, if there is anything."""
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
    """The files of the paths that `matching` gives, by key; also those that are renamed meanwhile."""
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


def _order(path: Path, status: os.stat_result) -> _Order:
    """When the files of a log were written: the present one last, whatever time its copy has.

    Numbers decide only between equal times, since some programs give the newest file the highest one.
    """
    # The path of a deleted file is another one's.
    return not is_rotated(path) and status.st_nlink > 0, status.st_mtime_ns, -rotation_number(path)


def _is_beginning(content: Content, original: Content) -> bool:
    """Whether a file, of which a part may still be missing, is like the beginning of another one.

    Raises `Incomplete`.
    """
    if content.growing:
        size = content.refresh().st_size
        span = min(size, SPAN)
        places = [0, size - span]
    else:
        # How much a packed file holds is known only at its end.
        span, places = SPAN, [0]
    return all(original.read(at, span).startswith(content.read(at, span)) for at in places)


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
