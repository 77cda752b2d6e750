"""A sink that remembers what it was given."""

from __future__ import annotations

from collections.abc import Sequence

from streamgauge.agents.ingest.batch import Batch
from streamgauge.agents.ingest.component import Delivered


class Collected:
    """A sink that remembers its commits; `error` is raised by them."""

    def __init__(self, error: Exception | None = None) -> None:
        self.commits: list[list[bytes]] = []
        self.written: list[bytes] = []
        self.error = error

    def write(self, batch: Batch) -> None:
        self.written += batch.values()

    def commit(self, batches: Sequence[Batch]) -> Delivered:
        if self.error is not None:
            raise self.error
        self.commits.append([value for batch in batches for value in batch.values()])
        return Delivered(sum(map(len, batches)), sum(len(batch.dead) for batch in batches))
