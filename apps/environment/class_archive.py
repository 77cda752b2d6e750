"""Class archives, which save a JVM from reading, verifying and laying out its jars' classes at every start.

A JVM can write one when a run ends normally, and map it into later runs of the same jars. It ignores an
archive that doesn't match its version or jars, and starts normally.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from filelock import FileLock, Timeout

from .cache import cache_folder
from .java import Java

_SILENT = ("-Xshare:auto", "-Xlog:cds*=off", "-Xlog:class+path=off")
_KEPT = 3
"""Archives of one name, such as those of several environments."""


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """A program's archive in the user's cache folder; it takes effect once it was made.

    ``of("kafka", java, jars)`` is that of a program which this Java runs from these jars; others than
    these, or another state of them, have another one. The class path must be the same each time.
    """

    file: Path

    @classmethod
    def of(cls, name: str, java: Java, jars: Iterable[Path]) -> Self:
        """The archive of these files. Raises `CacheError` if there is no place for it."""
        key = hashlib.sha256()
        for path in (java.program.resolve(), *sorted(jars)):
            state = path.stat()
            key.update(f"{path} {state.st_size} {state.st_mtime_ns}\n".encode())
        return cls(cache_folder() / "classes" / f"{name}-{key.hexdigest()[:16]}.jsa")

    def options(self) -> list[str]:
        """What a JVM is started with to use it; nothing while there is none."""
        with suppress(OSError):
            if self.file.stat().st_size:
                return [f"-XX:SharedArchiveFile={self.file}", *_SILENT]
        return []

    def make(self, rehearse: Callable[[Sequence[str]], object]) -> None:
        """Make it, unless it was made, is being made by another process, or can't be kept.

        `rehearse` starts the program with the options that it is given, has it do what it commonly does, and
        lets it end in order. What it raises is raised once; after that nothing is rehearsed again.
        """
        if self.file.exists():
            return
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            alone = FileLock(self.file.with_suffix(".lock")).acquire(blocking=False)
        except (OSError, Timeout):
            return
        with alone:
            if not self.file.exists():
                self._make(rehearse)

    def _make(self, rehearse: Callable[[Sequence[str]], object]) -> None:
        part = self.file.with_suffix(".part")
        part.unlink(missing_ok=True)
        try:
            rehearse([f"-XX:ArchiveClassesAtExit={part}", *_SILENT])
        except Exception:
            self.file.touch()
            raise
        # Where a Java wrote none, an empty file says so.
        part.touch()
        part.replace(self.file)
        name = self.file.stem.rpartition("-")[0]
        made = sorted(self.file.parent.glob(f"{name}-*.jsa"), key=lambda file: file.stat().st_mtime)
        for old in made[:-_KEPT]:
            old.unlink(missing_ok=True)
