"""Stream the new Parquet files of a folder, each read once, however the query ends in between.

A Python source doesn't know its query's checkpoint, so it keeps its own log: a small file for each step,
which lists the new files and never changes. An offset is a number of steps. If the log has a step that the
checkpoint lacks, it becomes the next micro-batch, so a restarted query reads the same files in the same
micro-batches.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from ...sketches.core.errors import RunError
from ..read_limits import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow, need_limits
from .files import files_of
from .reading import ParquetReader, PlannedRead

_STEPS = "steps"


@dataclass(frozen=True)
class Arriving:
    """The folder where files arrive, the folder of the log, and the most files that a step may have."""

    path: str
    log: str
    most: int | None = None


class FileLog:
    """The files that were read, step by step; several queries may share a log.

    >>> from tempfile import mkdtemp
    >>> log = FileLog(mkdtemp())
    >>> log.add(["a.parquet"]), log.add(["b.parquet", "c.parquet"]), log.steps()
    (True, True, 2)
    >>> log.files(1, 2)
    ['b.parquet', 'c.parquet']
    """

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._steps = 0

    def steps(self) -> int:
        """Return the number of steps."""
        while self._place(self._steps).exists():
            self._steps += 1
        return self._steps

    def files(self, first: int, end: int) -> list[str]:
        """Return the files of these steps. Raises `RunError` if the log lacks one."""
        files: list[str] = []
        for step in range(first, end):
            try:
                files += json.loads(self._place(step).read_text())
            except FileNotFoundError:
                raise RunError(
                    f"streamgauge-parquet: the log of files in {self._folder} lacks step {step}, which the "
                    "checkpoint has; put it back, or begin with a new checkpoint and a new log"
                ) from None
        return files

    def add(self, files: Sequence[str]) -> bool:
        """Add a step, unless another process has just added it; returns whether it did."""
        self._folder.mkdir(parents=True, exist_ok=True)
        unfinished = self._folder / f".{uuid.uuid4().hex}"
        with unfinished.open("w") as file:
            json.dump(list(files), file)
            file.flush()
            os.fsync(file.fileno())
        try:
            # Unlike a rename, this fails if the step exists already.
            os.link(unfinished, self._place(self.steps()))
        except FileExistsError:
            return False
        finally:
            unfinished.unlink()
        return True

    def _place(self, step: int) -> Path:
        return self._folder / f"{step:09d}.json"


class ArrivingReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches of one step each, and reads their tasks as `ParquetReader` does."""

    def __init__(self, reading: PlannedRead, arriving: Arriving) -> None:
        need_limits("files that arrive")
        self._reading = reading
        self._arriving = arriving
        self._log = FileLog(arriving.log)
        self._seen: set[str] = set()
        self._known = 0
        self._target: int | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Pickled to the workers with each task.
        return {"_reading": self._reading}

    def initialOffset(self) -> dict[str, Any]:
        """Return the offset before the first step."""
        return {_STEPS: 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return no limit: a step is limited when it is logged."""
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """End the query after the files that exist now."""
        self._look()
        self._target = self._log.steps()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the offset after the next step, if any. Raises `RunError` if the log is too short."""
        here = int(start[_STEPS])
        if here > self._log.steps():
            self._log.files(here - 1, here)
        if self._target is None and here == self._log.steps():
            self._look()
        end = self._log.steps() if self._target is None else max(self._target, here)
        return {_STEPS: min(here + 1, end)}

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return the last logged step."""
        return {_STEPS: self._log.steps()}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the tasks of the steps between two offsets."""
        files = self._log.files(int(start[_STEPS]), int(end[_STEPS]))
        return ParquetReader(replace(self._reading, files=tuple(files))).partitions()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """In a worker: read one task's rows and yield the results."""
        return ParquetReader(self._reading).read(partition)

    def _look(self) -> None:
        """Log new files."""
        while True:
            there = files_of(self._arriving.path)
            self._seen.update(self._log.files(self._known, self._log.steps()))
            self._known = self._log.steps()
            new = [file for file in there if file not in self._seen]
            most = self._arriving.most or len(new)
            if all(self._log.add(new[at : at + most]) for at in range(0, len(new), max(most, 1))):
                return
