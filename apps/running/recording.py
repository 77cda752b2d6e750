"""Replay an app's recording at its own pace."""

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
from ..jobs.job import Job
from ..recordings.archived import values_in_time
from ..recordings.batch import Batch
from ..recordings.compressed_files import whole

_AT_A_TIME = 10_000
_LAST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999: a time beyond it is invalid, and doesn't fit Kafka's timestamps."""


@dataclass(frozen=True)
class RecordedMessages:
    """The messages of files or archives in turn, at `speed` times the recorded speed; 0 is as fast as
    possible.

    A message without a known time, or with a time before the previous message's, gets the previous time.
    """

    job: Job
    paths: Sequence[Path]
    speed: float = 0.0

    def messages(self) -> Iterator[Message]:
        """Yield the messages; those before the first known time have no time.

        Raises `ValueError` for an incomplete compressed file.
        """
        latest: int | None = None
        for path in self.paths:
            with whole(path):
                for message in self._of(path):
                    if message.sent_ms is not None and abs(message.sent_ms) <= _LAST_MS:
                        latest = message.sent_ms if latest is None else max(latest, message.sent_ms)
                    yield message._replace(sent_ms=latest)

    def _of(self, path: Path) -> Iterator[Message]:
        if path.is_dir():
            return (Message(value or b"", key, sent) for value, key, sent in values_in_time(str(path)))
        return iter(self.job.form.messages(path, self.job.settings))

    def batches(self) -> Iterator[Batch]:
        """See `apps.recordings.batch.Source`."""
        messages, first, now = self.messages(), None, int(time.time() * 1000)
        while chunk := list(islice(messages, _AT_A_TIME)):
            known = (message.sent_ms for message in chunk if message.sent_ms is not None)
            first = next(known, None) if first is None else first
            usual = now if first is None else first
            stamps = np.array([usual if one.sent_ms is None else one.sent_ms for one in chunk], np.int64)
            due = np.zeros(len(chunk))
            if self.speed and first is not None:
                due = np.maximum(stamps - first, 0) / 1000 / self.speed
            yield Batch(
                pa.array([message.value for message in chunk], pa.large_binary()),
                np.array([zlib.crc32(message.key or b"") for message in chunk], np.uint32),
                stamps,
                due,
                [message.key for message in chunk],
            )
