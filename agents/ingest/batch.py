"""Batches of messages in an agent: slices of one block of bytes, without a Python object per message."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from ...sketches.core.errors import StreamgaugeError

Positions = Mapping[str, Mapping[str, Any] | None]
"""A source's positions, by the names of its parts, such as files; None for a part that is gone."""

Headers = Sequence[tuple[str, bytes | None]]
"""A message's headers; names may be repeated."""

_INLINE = 12  # bytes that an Arrow view contains itself


class IngestError(StreamgaugeError, RuntimeError):
    """An agent can't continue; the message names the cause and what to do."""


@dataclass(frozen=True, slots=True)
class DeadLine:
    """Bytes that can't be sent as a message, and the reason."""

    reason: str
    value: bytes


def _nothing() -> None:
    """Nobody waits for this batch."""


def _nothing_of(reason: str) -> None:
    """Nobody waits for this batch."""


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Some messages of a source: message ``i`` is ``data[starts[i] : starts[i] + lengths[i]]``.

    `data` is uint8, `starts` and `lengths` are int64. `stream` names the unit in which messages stay in
    order, such as a file: all messages of a stream go to one partition. `keys` has a key per message,
    `headers` are for all messages and `own_headers` has further ones per message. `timestamp_ms` is for all
    messages, or an int64 per message; 0 is the time of sending. Messages in `nulls` have no value. `dead` has
    messages that can't be sent, `dropped` counts intentionally dropped ones by reason. `positions` are the
    source's positions once the batch is delivered; then `acknowledged` is called, or `refused` with the
    reason if it never will be.

    >>> batch = Batch.of([b"one", b"", b"three"])
    >>> len(batch), batch.read, batch.values(), batch.nbytes
    (3, 3, [b'one', b'', b'three'], 8)
    >>> batch.where(batch.lengths > 0, "empty").account_text
    '3 read: 2 to send, 0 dead, 1 dropped (empty)'
    """

    data: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    stream: str = ""
    keys: Sequence[bytes | None] | None = None
    headers: Headers = ()
    own_headers: Sequence[Headers] | None = None
    timestamp_ms: int | np.ndarray = 0
    nulls: np.ndarray | None = None
    dead: Sequence[DeadLine] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)
    positions: Positions = field(default_factory=dict)
    acknowledged: Callable[[], None] = _nothing
    refused: Callable[[str], None] = _nothing_of

    @classmethod
    def of(cls, values: Sequence[bytes], **fields: Any) -> Batch:
        """Make a batch of these messages; `fields` are the other fields."""
        lengths = np.fromiter(map(len, values), np.int64, len(values))
        starts = np.cumsum(lengths) - lengths
        return cls(np.frombuffer(b"".join(values), np.uint8), starts, lengths, **fields)

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def read(self) -> int:
        """The number of messages that the source has read for the batch."""
        return len(self.starts) + len(self.dead) + sum(self.dropped.values())

    @property
    def nbytes(self) -> int:
        """The bytes of the messages."""
        return int(self.lengths.sum())

    @property
    def account_text(self) -> str:
        """The outcome of the messages that were read, as text."""
        why = f" ({', '.join(self.dropped)})" if self.dropped else ""
        gone = sum(self.dropped.values())
        return f"{self.read} read: {len(self)} to send, {len(self.dead)} dead, {gone} dropped{why}"

    def value(self, at: int) -> bytes:
        """Return the bytes of message `at`."""
        start = int(self.starts[at])
        return self.data[start : start + int(self.lengths[at])].tobytes()

    def values(self) -> list[bytes]:
        """Return the messages, each as an object of its own."""
        memory = self.data.data
        ends = (self.starts + self.lengths).tolist()
        return [bytes(memory[start:end]) for start, end in zip(self.starts.tolist(), ends)]

    def to_arrow(self) -> pa.Array:
        """Convert the messages to a large binary array."""
        return lines_to_arrow(self.data, self.starts, self.lengths)

    def where(self, kept: np.ndarray, reason: str) -> Batch:
        """Select the messages at which `kept` is True; the others count as dropped for `reason`."""
        gone = len(kept) - int(np.count_nonzero(kept))
        if not gone:
            return self
        dropped = {**self.dropped, reason: self.dropped.get(reason, 0) + gone}
        return replace(self._at(np.flatnonzero(kept)), dropped=dropped)

    def alone(self) -> Batch:
        """Return only the messages, without callbacks and counts, which are handled elsewhere."""
        return replace(self, dropped={}, positions={}, acknowledged=_nothing, refused=_nothing_of)

    def part(self, begin: int) -> Batch:
        """Return the messages from `begin` on."""
        return self if begin == 0 else self._at(np.arange(begin, len(self)))

    def _at(self, rows: np.ndarray) -> Batch:
        listed, stamps = rows.tolist(), self.timestamp_ms
        return replace(
            self,
            starts=self.starts[rows],
            lengths=self.lengths[rows],
            keys=self.keys and [self.keys[row] for row in listed],
            own_headers=self.own_headers and [self.own_headers[row] for row in listed],
            timestamp_ms=stamps if isinstance(stamps, int) else stamps[rows],
            nulls=None if self.nulls is None else self.nulls[rows],
        )

    def in_pieces(self, limit: int) -> Batch:
        """Split messages of more than `limit` bytes into several of `limit` bytes and a last one.

        >>> Batch.of([b"abcdef", b"", b"abcde"]).in_pieces(3).values()
        [b'abc', b'def', b'', b'abc', b'de']
        """
        counts = np.maximum(-(-self.lengths // limit), 1)
        rows = np.repeat(np.arange(len(self)), counts)
        if len(rows) == len(self):
            return self
        firsts = np.cumsum(counts) - counts
        before = (np.arange(len(rows)) - firsts[rows]) * limit
        pieces = self._at(rows)
        lengths = np.minimum(pieces.lengths - before, limit)
        return replace(pieces, starts=pieces.starts + before, lengths=lengths)

    def without_long(self, limit: int, shown: int) -> Batch:
        """Turn messages of more than `limit` bytes into dead lines of their first `shown` bytes."""
        long = self.lengths > limit
        if not long.any():
            return self
        dead = [
            DeadLine(f"{self.lengths[at]} bytes, above the limit of {limit}", self.value(int(at))[:shown])
            for at in np.flatnonzero(long)
        ]
        kept = self.where(~long, "")
        return replace(kept, dropped=self.dropped, dead=[*self.dead, *dead])


def lines_to_arrow(data: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> pa.Array:
    """Convert slices of `data` to a large binary Arrow array.

    >>> data = np.frombuffer(b"a,a longer line,", np.uint8)
    >>> lines_to_arrow(data, np.array([0, 2]), np.array([1, 13])).to_pylist()
    [b'a', b'a longer line']
    """
    if len(data) > np.iinfo(np.int32).max:
        raise ValueError(f"a block must be below 2 GiB, got {len(data)} bytes")
    # An Arrow view is the length, then the bytes themselves if they are few, else the first four bytes, the
    # buffer's number, and the position in it.
    views = np.zeros((len(starts), 16), np.uint8)
    numbers = views.view(np.int32)
    numbers[:, 0] = lengths
    longer = lengths > _INLINE
    beginning = (
        np.concatenate([data, np.zeros(_INLINE, np.uint8)])[starts[:, None] + np.arange(_INLINE)]
        if not longer.all()
        else data[starts[:, None] + np.arange(4)]
    )
    views[:, 4 : 4 + beginning.shape[1]] = beginning
    short = ~longer
    if short.any():
        inside = np.arange(_INLINE) < lengths[short, None]
        views[short, 4:] *= inside.astype(np.uint8)
    numbers[longer, 2] = 0
    numbers[longer, 3] = starts[longer]
    array = pa.Array.from_buffers(
        pa.binary_view(), len(starts), [None, pa.py_buffer(views), pa.py_buffer(data)], 0
    )
    return array.cast(pa.large_binary())
