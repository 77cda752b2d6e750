"""Closed windows as Parquet files named after them, which can be compacted day by day."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from ..table.day_file import add_to_day, day_file_of, has_source, last_end, replace_in_day
from ..table.schema import DAY, write_parquet
from ..table.stored import COMPACTED
from ..table.stored_files import (
    ObjectFile,
    StoredFile,
    delete,
    files_below,
    filesystem_in,
    stored_at,
    write_whole,
)
from ..windows.durations import Duration, microseconds
from ..windows.window import window_length
from .sink import ClosedWindow, Origin

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MANY = 1_000
"""The number of files of one day that triggers compaction."""


@dataclass(frozen=True)
class SketchesToParquet:
    """Write the table of sketches of each closed window to a file in `folder`, exactly once.

    Files lie in a folder for each day, ``window_date=2026-01-01``, which Spark and others can use as a column
    to filter by. A file's name is derived from the window, its partition of the table topic and the group
    (or, for a run without a `group_id`, the stream's whole definition): a window that is written again, after
    a crash or because rows followed a silence, replaces only its own file. Several groups and streams may
    therefore share a folder. Readers see a whole file or none.

    `folder` may be in an object store, ``"s3://bucket/minutes"``; boto finds this machine's credentials and
    settings for it. `read_table`, ``streamgauge query FOLDER`` and ``spark.read.parquet`` read it. If the
    disk is full, or the store unavailable, the run waits half a minute; then it ends with a `SinkError`, and
    the next run writes the window.

    There is a file for each window and partition. With `compacted`, a day's files become one once a later day
    begins, and the current day's whenever there are 1,000; a window that is delivered again replaces its rows
    there. The small files are deleted immediately afterwards; until then Spark reads both, but the readers of
    this package don't. Without it, compact old days into another folder (`compact`).

    With `keep`, such as ``"30d"``, files of this group whose windows all ended that long before the newest
    one are deleted, when a run writes the first window of a day.

    Raises `ValueError` for a URL whose store has no filesystem here, and for a `keep` that is not a length of
    time above 0.

    >>> from tempfile import TemporaryDirectory
    >>> import polars as pl
    >>> import streamgauge as sg
    >>> rows = sg.Stream.from_schema({"at": pl.Int64}, time=pl.from_epoch("at"))
    >>> by_minute = rows.tumbling("1m").agg(n=sg.count())
    >>> with TemporaryDirectory() as folder:
    ...     tester = sg.StreamTester(by_minute, sinks=[sg.SketchesToParquet(folder)])
    ...     _ = tester.feed([{"at": 1_767_225_600}])
    ...     _ = tester.finish()
    ...     [str(file.relative_to(folder))[:61] for file in Path(folder).rglob("*.parquet")]
    ['window_date=2026-01-01/20260101T000000Z-20260101T000100Z-0000']
    """

    folder: str | Path
    keep: Duration | None = None
    compacted: bool = False
    _days: dict[int, tuple[str, int]] = field(default_factory=dict, init=False, repr=False, compare=False)
    """By partition: the newest day that was written, and the number of files since the last compaction."""

    def __post_init__(self) -> None:
        if isinstance(root := stored_at(self.folder), ObjectFile):
            try:
                filesystem_in(root)
            except ValueError as error:
                raise ValueError(f"SketchesToParquet: {error}") from None
        if self.keep is not None:
            window_length("SketchesToParquet: keep must be longer", self.keep)

    def begin(self, origin: Origin) -> None:
        """See `WritingSink`. Raises `ValueError` for a key with the folders' name."""
        if DAY in origin.keys:
            raise ValueError(
                f"SketchesToParquet: {DAY!r} is what its folders are named after, and a key of this stream; "
                "give the key another name by with_columns"
            )

    def write(self, window: ClosedWindow) -> None:
        """See `WritingSink`. Sessions and count windows are written once they are final."""
        if window.may_grow:
            return
        day, _, name = self.name(window).partition("/")
        folder = stored_at(self.folder) / day
        day_file = day_file_of(folder, window.partition, window.origin.digest)
        # It is on the disk before the merger's checkpoint refers to it.
        if not has_source(day_file, name):
            write_whole(folder / name, lambda file: write_parquet(window.groups.table, file))
        elif not window.without_edges:  # windows without edges are final, and identical if repeated
            replace_in_day(day_file, window.groups.table)
        self._tidy(window, day)

    def _tidy(self, window: ClosedWindow, day: str) -> None:
        """Delete old files and compact days, at the first window of a day and after many windows."""
        newest, files = self._days.get(window.partition, ("", 0))
        begins = day > newest
        if begins and (self.keep is not None or self.compacted):
            self._tidy_days(window, day)
        files = 1 if begins else files + (day == newest)
        if self.compacted and files >= _MANY:
            self._compact(window, stored_at(self.folder) / day)
            files = 0
        self._days[window.partition] = max(day, newest), files

    def _tidy_days(self, window: ClosedWindow, newest: str) -> None:
        days: dict[StoredFile, list[StoredFile]] = {}
        for file in files_below(stored_at(self.folder)):
            if file.suffix == ".parquet" and f"-{window.origin.digest}" in file.name:
                days.setdefault(file.parent, []).append(file)
        for folder, files in days.items():
            if self.keep is not None:
                self._delete_older(window, files)
            if self.compacted and folder.name < newest:
                self._compact(window, folder)

    def _compact(self, window: ClosedWindow, folder: StoredFile) -> None:
        """Combine this partition's and group's files in a day's folder."""
        origin = f"-{window.partition:04d}-{window.origin.digest}"
        day_file = day_file_of(folder, window.partition, window.origin.digest)
        add_to_day(day_file, [f for f in files_below(folder) if origin in f.name and f.name != day_file.name])

    def _delete_older(self, window: ClosedWindow, files: list[StoredFile]) -> None:
        """Delete those of a group's files whose windows all ended `keep` before this one."""
        assert self.keep is not None
        oldest = _EPOCH + timedelta(microseconds=window.end_us - microseconds(self.keep))
        for file in files:
            if file.name.startswith(COMPACTED):
                # By its day it can't be old; its windows may even end later.
                begins = datetime.fromisoformat(file.parent.name.rpartition("=")[2]).replace(tzinfo=UTC)
                end = begins if begins > oldest else _EPOCH + timedelta(microseconds=last_end(file))
            else:
                end = _time(file.name.split("-")[1])
            if end <= oldest:
                delete(file)

    def name(self, window: ClosedWindow) -> str:
        """A window's file name, within the folder."""
        start, end = (_EPOCH + timedelta(microseconds=us) for us in (window.start_us, window.end_us))
        stem = f"{_timestamp(start)}-{_timestamp(end)}-{window.partition:04d}-{window.origin.digest}"
        if window.without_edges:
            stem += f"-{window.digest}"
        return f"{DAY}={start:%Y-%m-%d}/{stem}.parquet"


def _time(text: str) -> datetime:
    """The time in a file's name."""
    pattern = "%Y%m%dT%H%M%S.%fZ" if "." in text else "%Y%m%dT%H%M%SZ"
    return datetime.strptime(text, pattern).replace(tzinfo=UTC)


def _timestamp(time: datetime) -> str:
    return f"{time:%Y%m%dT%H%M%S}{f'.{time.microsecond:06d}' * (time.microsecond > 0)}Z"
