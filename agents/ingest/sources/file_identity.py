"""Whether a file is still the one that was read: by device, inode and the bytes at two places.

An inode is used again as soon as its file is gone, and a file that was truncated may have grown beyond where
it was read before anybody looks. So a position also keeps a hash of the first KiB that was read and of the
last one, checked whenever a file is opened, and, as bytes, with every read.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Self

from ..batch import Positions
from .file_content import Content

SPAN = 1024
"""Bytes that are compared at the beginning, and before the position."""


def file_key(status: os.stat_result) -> str:
    """Device and inode.

    >>> file_key(os.stat("/")) == file_key(os.stat("/."))
    True
    """
    return f"{status.st_dev}:{status.st_ino}"


@dataclass(frozen=True, slots=True)
class FilePosition:
    """How far a file was read, and what its bytes were: `head` the first, `tail` those before `offset`.

    Both are hashes of at most `SPAN` bytes. `path` is where it was seen last, `stream` the path of the log
    that it is a part of; `gone` is when it was seen to be no longer there (seconds since 1970), 0 as long as
    it is; `replaced` says that the file was truncated, or written anew.
    """

    path: str
    stream: str
    offset: int
    head: str
    tail: str
    gone: int = 0
    replaced: bool = False

    @classmethod
    def of(cls, path: str, stream: str, offset: int, head: bytes, tail: bytes) -> Self:
        """From the bytes themselves."""
        return cls(path, stream, offset, digest(head), digest(tail))

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> Self:
        """From what `describe` gave."""
        return cls(
            path=given["path"],
            stream=given["stream"],
            offset=given["offset"],
            head=given["head"],
            tail=given["tail"],
            gone=given.get("gone", 0),
            replaced=given.get("replaced", False),
        )

    @classmethod
    def by_key(cls, positions: Positions) -> dict[str, Self]:
        """Those of files; other parts of a source's positions are left out."""
        return {
            key: cls.parse(position) for key, position in positions.items() if position and "head" in position
        }

    def describe(self) -> dict[str, Any]:
        """For JSON."""
        plain: dict[str, Any] = {
            name: getattr(self, name) for name in ("path", "stream", "offset", "head", "tail")
        }
        if self.gone:
            plain["gone"] = self.gone
        if self.replaced:
            plain["replaced"] = True
        return plain

    @property
    def head_size(self) -> int:
        """How many bytes `head` is of."""
        return min(self.offset, SPAN)

    def matches(self, head: bytes, tail: bytes) -> bool:
        """Whether these are the bytes that a file of this position has at the beginning and before it."""
        return digest(head) == self.head and digest(tail) == self.tail

    def is_of(self, content: Content) -> bool:
        """Whether an open file begins with what was read so far."""
        size = self.head_size
        head = content.read(0, size)
        tail = content.read(self.offset - size, size)
        return len(tail) == size and self.matches(head, tail)


def digest(data: bytes) -> str:
    """A short hash."""
    return blake2b(data, digest_size=8).hexdigest()
