"""Messages on their way through an agent: slices of one block of bytes, with no Python object for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from ...sketches.core.errors import StreamgaugeError

Positions = Mapping[str, Mapping[str, Any] | None]
"""How far a source has been read, by the names of its parts, such as files; None of one that is gone."""

Headers = Sequence[tuple[str, bytes | None]]
"""A message's headers; names may come several times."""

_INLINE = 12  # bytes that an Arrow view holds itself


class IngestError(StreamgaugeError, RuntimeError):
    """An agent can't go on; the message says what is wrong, with what, and what to do."""


@dataclass(frozen=True, slots=True)
class DeadLine:
    """Bytes that can't be sent as a message, and why."""

    reason: str
    value: bytes


def _nothing() -> None:
    """Nobody waits for this batch."""


def _nothing_of(reason: str) -> None:
    """Nobody waits for this batch."""


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Some messages of a source: message ``i`` is ``data[starts[i] : starts[i] + lengths[i]]``.

    `data` is uint8, `starts` and `lengths` are int64. `stream` names what the order of the messages is kept
    in, such as a file: all of a stream go to one partition. `keys` are those of each message, `headers` those
    of all and `own_headers` further ones of each. `timestamp_ms` is that of all, or int64 of each; 0 is the
    moment of sending. Messages that are `nulls` have no value at all. What of it can't be sent is `dead`,
    what was left out on purpose `dropped`, by the reason. `positions` say how far the source is once the
    batch is delivered; then `acknowledged` is called, or `refused` with the reason, if it never will be.

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
        """A batch of these messages; `fields` are the others'."""
        lengths = np.fromiter(map(len, values), np.int64, len(values))
        starts = np.cumsum(lengths) - lengths
        return cls(np.frombuffer(b"".join(values), np.uint8), starts, lengths, **fields)

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def read(self) -> int:
        """How many messages the source has read for it."""
        return len(self.starts) + len(self.dead) + sum(self.dropped.values())

    @property
    def nbytes(self) -> int:
        """The bytes of the messages."""
        return int(self.lengths.sum())

    @property
    def account_text(self) -> str:
        """What became of what was read."""
        why = f" ({', '.join(self.dropped)})" if self.dropped else ""
        gone = sum(self.dropped.values())
        return f"{self.read} read: {len(self)} to send, {len(self.dead)} dead, {gone} dropped{why}"

    def value(self, at: int) -> bytes:
        """The bytes of message `at`."""
        start = int(self.starts[at])
        return self.data[start : start + int(self.lengths[at])].tobytes()

    def values(self) -> list[bytes]:
        """The messages, each an object of its own."""
        memory = self.data.data
        ends = (self.starts + self.lengths).tolist()
        return [bytes(memory[start:end]) for start, end in zip(self.starts.tolist(), ends)]

    def to_arrow(self) -> pa.Array:
        """The messages as a large binary array."""
        return lines_to_arrow(self.data, self.starts, self.lengths)

    def where(self, kept: np.ndarray, reason: str) -> Batch:
        """Only the messages at which `kept` is True; the others count as dropped for `reason`."""
        gone = len(kept) - int(np.count_nonzero(kept))
        if not gone:
            return self
        dropped = {**self.dropped, reason: self.dropped.get(reason, 0) + gone}
        return replace(self._at(np.flatnonzero(kept)), dropped=dropped)

    def alone(self) -> Batch:
        """The messages alone: nobody waits for them, and what was dropped is counted elsewhere."""
        return replace(self, dropped={}, positions={}, acknowledged=_nothing, refused=_nothing_of)

    def part(self, begin: int) -> Batch:
        """The messages from `begin` on."""
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
        """Messages of more than `limit` bytes as several, each but the last of `limit` bytes.

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
        """Only messages of at most `limit` bytes; of the others the first `shown` bytes are dead lines."""
        long = self.lengths > limit
        if not long.any():
            return self
        dead = [
            DeadLine(f"{self.lengths[at]} bytes, and at most {limit} go", self.value(int(at))[:shown])
            for at in np.flatnonzero(long)
        ]
        kept = self.where(~long, "")
        return replace(kept, dropped=self.dropped, dead=[*self.dead, *dead])


def lines_to_arrow(data: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> pa.Array:
    """Slices of `data` as a large binary Arrow array.

    >>> data = np.frombuffer(b"a,a longer line,", np.uint8)
    >>> lines_to_arrow(data, np.array([0, 2]), np.array([1, 13])).to_pylist()
    [b'a', b'a longer line']
    """
    if len(data) > np.iinfo(np.int32).max:
        raise ValueError(f"a block must be below 2 GiB, got {len(data)} bytes")
    # Arrow's views: the length, then the bytes themselves if they are few, else the first four, the buffer's
    # number, and where in it they begin.
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
