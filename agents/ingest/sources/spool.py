"""A folder for complete files: each file is read once, then renamed or deleted."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import chain, count
from pathlib import Path

from ..batch import Batch, IngestError, Positions
from ..component import Place
from .file_content import Incomplete, open_content
from .file_identity import FilePosition, file_key
from .lines import LongLines, Multiline
from .rotation import stream_of
from .tailed_file import Replaced, TailedFile

log = logging.getLogger("streamgauge.ingest")

_SCAN_SECONDS = 0.5


@dataclass(frozen=True, kw_only=True)
class Spool:
    """The lines of all files in `folder` that match `pattern`, the oldest first.

    Files must be complete when they appear: write a file elsewhere or under another name, for example one
    that begins with a dot, and then rename it. After its lines are delivered it gets the `suffix` (with a
    number before it if a file of that name exists), or is deleted if the suffix is empty.
    """

    folder: str
    pattern: str = "*"
    suffix: str = ".COMPLETED"
    max_line: int = 16 * 1024 * 1024
    long_lines: LongLines = "dead_letter"
    multiline: Multiline | None = None

    def open(self, place: Place, positions: Positions) -> SpoolSource:
        """See `SourceSettings`."""
        if not Path(self.folder).is_dir():
            raise IngestError(f"there is no folder {self.folder}")
        return SpoolSource(self, positions)


class SpoolSource:
    """A `Source` of the lines of a folder's files."""

    waited_for = finite = False

    def __init__(self, settings: Spool, positions: Positions) -> None:
        self._settings = settings
        self._folder = Path(settings.folder).absolute()
        self._known = FilePosition.by_key(positions)
        self._file: TailedFile | None = None
        self._read: set[str] = set()
        self._damaged: set[str] = set()
        self._renamed: list[str] = []

    @property
    def ended(self) -> bool:
        """See `Source`."""
        return self._file is None and self._oldest() is None

    def read(self, seconds: float) -> Batch | None:
        """See `Source`."""
        deadline = time.monotonic() + seconds
        while True:
            if self._file is None:
                self._file = self._open()
            if self._file is not None:
                if (batch := self._next(self._file)) is not None:
                    return batch
                continue
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            time.sleep(min(_SCAN_SECONDS, left))

    def close(self) -> None:
        """See `Source`."""
        if self._file is not None:
            self._file.content.close()

    def _next(self, file: TailedFile) -> Batch | None:
        try:
            batch = file.next(finished=True)
        except Incomplete as error:
            log.warning("%s: the compressed file is truncated or damaged: %s", file.path, error)
            self._damaged.add(file.key)
            batch = None
        except Replaced:
            raise IngestError(
                f"{file.path} was changed while it was being read; write files elsewhere and move them into "
                "the folder once complete"
            ) from None
        if batch is not None:
            self._known[file.key] = file.position
            return batch
        self._file = None
        file.content.close()
        if file.key in self._damaged:
            return None
        # Its lines may not be delivered yet: it is renamed with their commit, or by the next agent run.
        self._read.add(file.key)
        return Batch.of(
            [],
            stream=file.stream,
            acknowledged=self._done(file),
            positions={**self._gone(), file.key: file.position.describe()},
        )

    def _gone(self) -> dict[str, None]:
        """Return files that have been renamed or deleted since."""
        gone, self._renamed = dict.fromkeys(self._renamed), []
        return gone

    def _done(self, file: TailedFile) -> Callable[[], None]:
        def done() -> None:
            with suppress(FileNotFoundError):
                # Another file of the same name may exist by now; it is read next.
                if file_key(file.path.stat()) == file.key:
                    if self._settings.suffix:
                        file.path.rename(self._free_name(file.path))
                    else:
                        file.path.unlink()
            self._known.pop(file.key, None)
            self._read.discard(file.key)
            self._renamed.append(file.key)

        return done

    def _free_name(self, path: Path) -> Path:
        """Return a new name for a file that was read, with a number if the name is in use."""
        names = (
            f"{path.name}{number}{self._settings.suffix}"
            for number in chain([""], map(".{}".format, count(1)))
        )
        return next(free for name in names if not (free := path.with_name(name)).exists())

    def _open(self) -> TailedFile | None:
        path = self._oldest()
        if path is None:
            return None
        try:
            content = open_content(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise IngestError(f"{path} can't be read: {error.strerror}") from None
        key = file_key(content.status)
        known = self._known.get(key)
        try:
            offset = known.offset if known is not None and known.is_of(content) else 0
        except Incomplete:
            offset = 0
        settings = self._settings
        pieces = settings.long_lines == "pieces"
        limits = settings.max_line, settings.multiline, pieces
        return TailedFile(content, key, path, stream_of(path), offset, *limits)

    def _oldest(self) -> Path | None:
        files = []
        for path in self._folder.iterdir():
            if path.name.startswith(".") or not fnmatch(path.name, self._settings.pattern):
                continue
            if self._settings.suffix and path.name.endswith(self._settings.suffix):
                continue
            try:
                status = path.stat()
            except FileNotFoundError:
                continue
            key = file_key(status)
            if path.is_file() and key not in self._read and key not in self._damaged:
                files.append((status.st_mtime_ns, path.name, path))
        return min(files)[2] if files else None
