"""Closed windows as Parquet files, one for each window, named after it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from ..table.schema import DAY, write_parquet
from ..whole_file import whole_file
from ..windows.durations import Duration, microseconds
from ..windows.window import window_length
from .sink import ClosedWindow, Origin

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class SketchesToParquet:
    """Write the table of sketches of each closed window to a file in `folder`, exactly once.

    Files lie in a folder for each day, ``window_date=2026-01-01``, which Spark and others can use as a column
    to filter by. A file's name is derived from the window, its partition of the table topic and the group
    (or, for a run without a `group_id`, the stream's whole definition): a window that is written again, after
    a crash or because rows followed a silence, replaces only its own file. Several groups and streams may
    therefore share a folder. Readers see a whole file or none.

    `read_table`, ``streamgauge query FOLDER`` and ``spark.read.parquet`` read the folder. There is a file for
    each window and partition: if windows are short, compact old days (`compact`). If the disk is full or
    unavailable, the run waits half a minute; then it ends with a `SinkError`, and the next run writes the
    window.

    With `keep`, such as ``"30d"``, files of this group whose windows ended that long before the newest one
    are deleted, when the first window of a day is written.

    Raises `ValueError` for an address such as ``"s3://…"`` in place of a folder, and for a `keep` that is not
    a length of time above 0.

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

    def __post_init__(self) -> None:
        if "://" in str(self.folder):
            raise ValueError(
                f"SketchesToParquet: folder must be a folder of this machine or a mounted one, got "
                f"{str(self.folder)!r}; to copy it there, sync the folder, whose files never change"
            )
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
        """See `WritingSink`. Sessions and windows by count are written once they are final."""
        if window.may_grow:
            return
        done = Path(self.folder) / self.name(window)
        first_of_day = not done.parent.exists()
        done.parent.mkdir(parents=True, exist_ok=True)
        # On the disk before the merger's place says that it is there.
        with whole_file(done) as unfinished:
            write_parquet(window.groups.table, unfinished)
        if self.keep is not None and first_of_day:
            self._delete_older(window)

    def _delete_older(self, window: ClosedWindow) -> None:
        """Delete this group's files of windows that ended `keep` before this one."""
        assert self.keep is not None
        oldest = _EPOCH + timedelta(microseconds=window.end_us - microseconds(self.keep))
        for file in Path(self.folder).glob(f"{DAY}=*/*-{window.origin.digest}*.parquet"):
            end = file.name.split("-")[1].removesuffix("Z")
            pattern = "%Y%m%dT%H%M%S.%f" if "." in end else "%Y%m%dT%H%M%S"
            if datetime.strptime(end, pattern).replace(tzinfo=UTC) <= oldest:
                file.unlink(missing_ok=True)

    def name(self, window: ClosedWindow) -> str:
        """A window's file, within the folder."""
        start, end = (_EPOCH + timedelta(microseconds=us) for us in (window.start_us, window.end_us))
        stem = f"{_timestamp(start)}-{_timestamp(end)}-{window.partition:04d}-{window.origin.digest}"
        if window.without_edges:
            stem += f"-{window.digest}"
        return f"{DAY}={start:%Y-%m-%d}/{stem}.parquet"


def _timestamp(time: datetime) -> str:
    return f"{time:%Y%m%dT%H%M%S}{f'.{time.microsecond:06d}' * (time.microsecond > 0)}Z"
