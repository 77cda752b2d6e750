"""Values larger than a broker's messages, sent in parts and put together again: all of them or nothing.

| header | what |
|---|---|
| `sending` | of each part, the same for the parts of one value and for no other |
| `part` | its number from 0, and how many there are: ``2/5`` |

A value that fits one message has neither. Parts may have other messages between them, come twice, or never
all come, where their sender died.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...sketching.position import Input
from .faults import DeltaError

LARGEST_PART = 900_000
"""Bytes of a part: with its headers less than the 1,048,588 that a topic takes unless told otherwise."""


@dataclass(frozen=True, slots=True)
class Record:
    """A value that is whole, its headers, the offset of its last part, and what its parts were called."""

    value: bytes
    headers: Mapping[str, bytes]
    offset: int
    name: str


@dataclass(slots=True)
class Waiting:
    """The parts of a value that came so far."""

    headers: Mapping[str, bytes]
    count: int
    parts: dict[int, bytes] = field(default_factory=dict)


def in_parts(
    value: bytes, headers: list[tuple[str, bytes]], largest: int = LARGEST_PART
) -> Iterator[tuple[bytes, list[tuple[str, bytes]]]]:
    """The messages, value and headers, that bring a value of any size.

    >>> [len(part) for part, _ in in_parts(bytes(10), [], largest=4)]
    [4, 4, 2]
    """
    if len(value) <= largest:
        yield value, headers
        return
    count = -(-len(value) // largest)
    name = uuid.uuid4().hex.encode()
    for part in range(count):
        told = [("sending", name), ("part", f"{part}/{count}".encode())]
        yield value[part * largest : (part + 1) * largest], headers + told


class Gather:
    """Puts the values of one partition's messages together again.

    >>> gather = Gather()
    >>> messages = list(in_parts(b"abcdef", [("kind", b"x")], largest=4))
    >>> [gather.take(value, headers, at)[1] is not None for at, (value, headers) in enumerate(messages)]
    [False, True]
    """

    def __init__(self) -> None:
        self.waiting: dict[str, Waiting] = {}

    def take(self, value: bytes | None, headers: Any, offset: int) -> tuple[str, Record | None]:
        """What a message's parts are called, and the record, if it is whole now; headers are (name, bytes).

        Raises `DeltaError` for headers that make no sense.
        """
        told = {name: content or b"" for name, content in headers or ()}
        name = told.get("sending", b"").decode(errors="replace")
        if not name:
            return "", Record(value or b"", told, offset, "")
        try:
            part, count = map(int, told["part"].split(b"/"))
        except (KeyError, ValueError):
            raise DeltaError(f"a damaged delta: its part is {told.get('part', b'missing')!r}") from None
        waiting = self.waiting.setdefault(name, Waiting(told, count))
        waiting.parts[part] = value or b""
        if len(waiting.parts) < count:
            return name, None
        del self.waiting[name]
        whole = b"".join(waiting.parts[number] for number in sorted(waiting.parts))
        return name, Record(whole, waiting.headers, offset, name)

    def overtaken(self, where: Input, following: int) -> list[str]:
        """Give up deltas of an input partition that begin before `following`, which another brought since.

        Gives their names. Their sender died before all parts were sent, or will find itself to be too late.
        """
        found = [
            name
            for name, waiting in self.waiting.items()
            if waiting.headers.get("topic") == where.topic.encode()
            and waiting.headers.get("partition") == str(where.partition).encode()
            and int(waiting.headers.get("first", b"0")) < following
        ]
        for name in found:
            del self.waiting[name]
        return found
