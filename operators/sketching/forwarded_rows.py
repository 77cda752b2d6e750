"""Forwarded rows: encoded batch by batch, and held until their delta is delivered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ...sketches.core.lazy import pl
from ..definition.forwarding import Forwarding
from ..formats.encode import key_bytes
from ..formats.reasons import preceded
from ..kafka.outgoing_message import ANY_PARTITION, Outgoing
from ..steps.row_steps import Refuse, Rows, Stepped, attempt
from ..watermarks.position import Input

SOURCE = "source"
"""The header with the message that a row comes from, as ``topic/partition/offset``."""


class ForwardedRow(NamedTuple):
    """A row's message, and the offset of the message that it comes from; None if it comes from two."""

    offset: int | None
    value: bytes | None
    key: bytes | None


class ForwardedRows:
    """The rows of one partition since the last `drain`, in order."""

    def __init__(self, sending: Forwarding) -> None:
        self._sending = sending
        self._rows: list[ForwardedRow] = []
        self.nbytes = 0

    def add(self, left: Stepped, offsets: np.ndarray, refuse: Refuse) -> Stepped:
        """Encode rows, whose caller's rows have these offsets; returns those that could be encoded.

        A caller's row is refused as a whole: if one of the rows that it became can't be encoded, none of them
        is sent.
        """
        refused: set[int] = set()

        def refuse_once(numbers: np.ndarray, reason: str) -> None:
            for number in numbers.tolist():
                if number not in refused:
                    refused.add(number)
                    refuse(np.array([number]), preceded("it can't be sent on: ", reason))

        rows, encoded = attempt(Rows(left.frame, left.numbers), self._encoded, refuse_once)
        if refused:
            whole = ~np.isin(rows.numbers, list(refused))
            encoded = [one for one, sent in zip(encoded, whole.tolist()) if sent]
            rows = rows.keep(whole)
        self._hold(offsets[rows.numbers].tolist(), encoded)
        return Stepped(rows.frame, rows.numbers, left.filtered)

    def add_joined(self, frame: pl.DataFrame) -> None:
        """Encode the rows of two joined streams.

        Raises what the encoder raises: for a pair, neither message alone could be refused.
        """
        self._hold([None] * frame.height, self._encoded(Rows(frame, np.arange(frame.height))))

    def drain(self) -> tuple[ForwardedRow, ...]:
        """The rows so far; starts empty again."""
        rows, self._rows, self.nbytes = tuple(self._rows), [], 0
        return rows

    def _hold(self, offsets: list[Any], encoded: list[tuple[bytes | None, bytes | None]]) -> None:
        for offset, (value, key) in zip(offsets, encoded):
            self._rows.append(ForwardedRow(offset, value, key))
            self.nbytes += len(value or b"") + len(key or b"") + 100

    def _encoded(self, rows: Rows) -> list[tuple[bytes | None, bytes | None]]:
        keys: Iterable[bytes | None] = [None] * rows.frame.height
        if self._sending.key:
            keys = map(key_bytes, rows.frame.select(self._sending.key).iter_rows())
        return list(zip(self._sending.value.encode(rows.frame), keys, strict=True))


def outgoing(rows: Iterable[ForwardedRow], where: Input, topic: str, partitions: int) -> Iterator[Outgoing]:
    """The messages of a partition's rows, for a topic with this number of partitions.

    Without a key they all go to one partition, so that they stay in order.

    >>> [found] = outgoing([ForwardedRow(17, b"{}", None)], Input("posts", 3), "good", 2)
    >>> found.partition, found.headers
    (1, [('source', b'posts/3/17')])
    """
    alike, begin = where.partition % partitions, f"{where.topic}/{where.partition}/"
    for row in rows:
        partition = alike if row.key is None else ANY_PARTITION
        headers = [] if row.offset is None else [(SOURCE, f"{begin}{row.offset}".encode())]
        yield Outgoing(topic, partition, row.value, headers, row.key, is_row=True)
