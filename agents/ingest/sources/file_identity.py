"""Check whether a file is still the one that was read: by device, inode and the bytes at two places.

An inode may be reused as soon as its file is gone, and a truncated file may have grown beyond the old
position before the next check. So a position also has a hash of the first KiB and of the last KiB that were
read, which are compared whenever a file is opened, and, as bytes, with every read.
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
"""The number of bytes compared at the beginning, and before the position."""


def file_key(status: os.stat_result) -> str:
    """Return device and inode as a key.

    >>> file_key(os.stat("/")) == file_key(os.stat("/."))
    True
    """
    return f"{status.st_dev}:{status.st_ino}"


@dataclass(frozen=True, slots=True)
class FilePosition:
    """A position in a file, with hashes of its bytes: `head` of the first, `tail` of those before `offset`.

    Both are hashes of at most `SPAN` bytes. `path` is where the file was last seen, `stream` the path of its
    log; `gone` is when it was found missing (seconds since 1970), 0 while it exists; `replaced` says that the
    file was truncated or rewritten.
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
        """Make a position from the bytes themselves."""
        return cls(path, stream, offset, digest(head), digest(tail))

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> Self:
        """Parse the result of `describe`."""
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
        """Return the positions of files; other parts of a source's positions are left out."""
        return {
            key: cls.parse(position) for key, position in positions.items() if position and "head" in position
        }

    def describe(self) -> dict[str, Any]:
        """Convert to plain values for JSON."""
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
        """The number of bytes that `head` covers."""
        return min(self.offset, SPAN)

    def matches(self, head: bytes, tail: bytes) -> bool:
        """Whether these bytes match this position's bytes at the beginning and before the offset."""
        return digest(head) == self.head and digest(tail) == self.tail

    def is_of(self, content: Content) -> bool:
        """Whether an open file contains what was read so far."""
        size = self.head_size
        head = content.read(0, size)
        tail = content.read(self.offset - size, size)
        return len(tail) == size and self.matches(head, tail)


def digest(data: bytes) -> str:
    """Compute a short hash."""
    return blake2b(data, digest_size=8).hexdigest()
