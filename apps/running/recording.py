"""A recording of an app as messages to send, in its own rhythm."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa

from ..app import Message
from ..replay.batch import Batch
from .asked import Job

_AT_A_TIME = 10_000


@dataclass(frozen=True)
class RecordedMessages:
    """The messages of files, one file after the other; `speed` times faster than they were sent, 0 at once.

    A message whose time isn't known was sent with the one before it.
    """

    job: Job
    paths: Sequence[Path]
    speed: float = 0.0

    def messages(self) -> Iterator[Message]:
        """Them one by one."""
        for path in self.paths:
            yield from self.job.form.messages(path, self.job.settings)

    def batches(self) -> Iterator[Batch]:
        """See `apps.replay.batch.Source`."""
        found, first, latest = self.messages(), None, int(time.time() * 1000)
        while chunk := list(islice(found, _AT_A_TIME)):
            sent = []
            for message in chunk:
                if message.sent_ms is not None:
                    latest = message.sent_ms if first is None else max(latest, message.sent_ms)
                    first = latest if first is None else first
                sent.append(latest)
            stamps = np.array(sent, np.int64)
            due = np.zeros(len(chunk))
            if self.speed and first is not None:
                due = np.maximum(stamps - first, 0) / 1000 / self.speed
            yield Batch(
                pa.array([message.value for message in chunk], pa.large_binary()),
                np.array([zlib.crc32(message.key or b"") for message in chunk], np.uint32),
                stamps,
                due,
            )
