"""Values larger than a broker's messages, sent in parts and reassembled, completely or not at all.

| header | content |
|---|---|
| `sending` | in each part, the same for all parts of one value and unique to it |
| `part` | its number from 0, and the number of parts: ``2/5`` |

A value that fits into one message has neither. Parts may have other messages between them, arrive twice, or
never arrive completely, if their sender died.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..watermarks.position import Input
from .log_faults import DeltaError

LARGEST_PART = 900_000
"""Bytes of a part: with its headers, less than the 1,048,588 that a topic accepts by default."""


@dataclass(frozen=True, slots=True)
class Record:
    """A complete value, its headers, the offset of its last part, and the name of its parts."""

    value: bytes
    headers: Mapping[str, bytes]
    offset: int
    name: str


@dataclass(slots=True)
class PendingValue:
    """The parts of a value that have arrived so far."""

    headers: Mapping[str, bytes]
    count: int
    parts: dict[int, bytes] = field(default_factory=dict)


def split_value(
    value: bytes, headers: list[tuple[str, bytes]], largest: int = LARGEST_PART
) -> Iterator[tuple[bytes, list[tuple[str, bytes]]]]:
    """The messages, each a value and headers, that carry a value of any size.

    >>> [len(part) for part, _ in split_value(bytes(10), [], largest=4)]
    [4, 4, 2]
    """
    if len(value) <= largest:
        yield value, headers
        return
    count = -(-len(value) // largest)
    name = uuid.uuid4().hex.encode()
    for part in range(count):
        part_headers = [("sending", name), ("part", f"{part}/{count}".encode())]
        yield value[part * largest : (part + 1) * largest], headers + part_headers


class ChunkAssembler:
    """Reassembles the values of one partition's messages.

    >>> gather = ChunkAssembler()
    >>> messages = list(split_value(b"abcdef", [("kind", b"x")], largest=4))
    >>> [gather.add(value, headers, at)[1] is not None for at, (value, headers) in enumerate(messages)]
    [False, True]
    """

    def __init__(self) -> None:
        self.pending: dict[str, PendingValue] = {}

    def add(self, value: bytes | None, headers: Any, offset: int) -> tuple[str, Record | None]:
        """Add a message with headers (name, bytes); returns its parts' name, and the record if complete.

        Raises `DeltaError` for invalid headers.
        """
        header_values = {name: content or b"" for name, content in headers or ()}
        name = header_values.get("sending", b"").decode(errors="replace")
        if not name:
            return "", Record(value or b"", header_values, offset, "")
        try:
            part, count = map(int, header_values["part"].split(b"/"))
        except (KeyError, ValueError):
            raise DeltaError(
                f"a damaged delta: its part is {header_values.get('part', b'missing')!r}"
            ) from None
        waiting = self.pending.setdefault(name, PendingValue(header_values, count))
        waiting.parts[part] = value or b""
        if len(waiting.parts) < count:
            return name, None
        del self.pending[name]
        whole = b"".join(waiting.parts[number] for number in sorted(waiting.parts))
        return name, Record(whole, waiting.headers, offset, name)

    def drop_overtaken(self, where: Input, following: int) -> list[str]:
        """Drop incomplete deltas of an input partition that begin before `following`, the offset reached.

        Returns their names. Their sender died before it had sent all parts, or will find that it is too late.
        """
        names = [
            name
            for name, waiting in self.pending.items()
            if waiting.headers.get("topic") == where.topic.encode()
            and waiting.headers.get("partition") == str(where.partition).encode()
            and int(waiting.headers.get("first", b"0")) < following
        ]
        for name in names:
            del self.pending[name]
        return names
