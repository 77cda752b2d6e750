"""New Parquet files of a folder as a stream: each is read once, whatever ends the query in between.

A Python source doesn't know its query's checkpoint, so it keeps a log of its own: a small file for each step,
which names files that were new, and is never changed. An offset is a number of steps. A step that is logged
and that the checkpoint doesn't know is the next one, so a query reads the same files in the same
micro-batches however often it is started.
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
    """The folder where files arrive, the folder of the log, and how many files a step has at most."""

    path: str
    log: str
    most: int | None = None


class FileLog:
    """The files that were read, step by step; several queries may read and write one.

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
        """How many steps there are."""
        while self._place(self._steps).exists():
            self._steps += 1
        return self._steps

    def files(self, first: int, end: int) -> list[str]:
        """The files of these steps. Raises `RunError` if the log lacks one."""
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
        """Add a step, unless somebody else has just added one."""
        self._folder.mkdir(parents=True, exist_ok=True)
        unfinished = self._folder / f".{uuid.uuid4().hex}"
        with unfinished.open("w") as file:
            json.dump(list(files), file)
            file.flush()
            os.fsync(file.fileno())
        try:
            # Unlike renaming, this fails where the step is there already.
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
        # What workers need; they get it with each task.
        return {"_reading": self._reading}

    def initialOffset(self) -> dict[str, Any]:
        """Before the first step."""
        return {_STEPS: 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        """Steps are limited where they are logged."""
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """The query ends with the files that are there now."""
        self._look()
        self._target = self._log.steps()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """The next step, if there is one. Raises `RunError` if the log is shorter than the checkpoint."""
        here = int(start[_STEPS])
        if here > self._log.steps():
            self._log.files(here - 1, here)
        if self._target is None and here == self._log.steps():
            self._look()
        end = self._log.steps() if self._target is None else max(self._target, here)
        return {_STEPS: min(here + 1, end)}

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """The last step that is logged."""
        return {_STEPS: self._log.steps()}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The tasks of the steps between."""
        files = self._log.files(int(start[_STEPS]), int(end[_STEPS]))
        return ParquetReader(replace(self._reading, files=tuple(files))).partitions()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """In a worker: what is made of one task's rows."""
        return ParquetReader(self._reading).read(partition)

    def _look(self) -> None:
        """Log the files that are new."""
        while True:
            there = files_of(self._arriving.path)
            self._seen.update(self._log.files(self._known, self._log.steps()))
            self._known = self._log.steps()
            new = [file for file in there if file not in self._seen]
            most = self._arriving.most or len(new)
            if all(self._log.add(new[at : at + most]) for at in range(0, len(new), max(most, 1))):
                return
