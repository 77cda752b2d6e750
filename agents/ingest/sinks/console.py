"""Standard output, to see what an agent would send."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from ....operators.watching.terminal import write_line
from ..batch import Batch
from ..component import Delivered, Place
from ..local_positions import LocalPositions
from .file import lines


@dataclass(frozen=True, kw_only=True)
class Console:
    """Messages as lines; escaped if standard output is a terminal, and unchanged otherwise."""

    def open(self, place: Place) -> ConsoleSink:
        """See `SinkSettings`."""
        return ConsoleSink(place)


class ConsoleSink:
    """A `Sink` that prints."""

    def __init__(self, place: Place) -> None:
        self._kept = LocalPositions(place.folder, place.agent, place.source)
        self.positions = self._kept.positions

    def write(self, batch: Batch) -> None:
        """See `Sink`."""
        if sys.stdout.isatty():
            for value in batch.values():
                write_line(value.decode(errors="replace"))
        elif len(batch):
            sys.stdout.buffer.write(lines(batch))
        for line in batch.dead:
            write_line(f"dead: {line.reason}: {line.value.decode(errors='replace')}", sys.stderr)

    def commit(self, batches: Sequence[Batch]) -> Delivered:
        """See `Sink`."""
        sys.stdout.flush()
        for batch in batches:
            if batch.positions:
                self._kept.keep(batch.positions)
        return Delivered(sum(map(len, batches)), sum(len(batch.dead) for batch in batches))

    def close(self) -> None:
        """See `Sink`."""
