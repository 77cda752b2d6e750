"""Add headers to all messages: the time of reading, the machine's name, or configured values."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..batch import Batch
from ..component import Place


@dataclass(frozen=True, kw_only=True)
class Timestamp:
    """The header `header`: when the message was read, in milliseconds since 1970."""

    header: str = "timestamp"

    def open(self, place: Place) -> Timestamp:
        """See `InterceptorSettings`."""
        return self

    def apply(self, batch: Batch) -> Batch:
        """See `Interceptor`."""
        return with_header(batch, self.header, str(int(time.time() * 1000)))


@dataclass(frozen=True, kw_only=True)
class Host:
    """The header `header`: the name of this machine."""

    header: str = "host"

    def open(self, place: Place) -> Static:
        """See `InterceptorSettings`."""
        return Static(headers={self.header: socket.gethostname()})


@dataclass(frozen=True, kw_only=True)
class Static:
    """The same `headers` for all messages."""

    headers: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.headers:
            raise ValueError('headers must name at least one, as in { env = "test" }, got none')

    def open(self, place: Place) -> Static:
        """See `InterceptorSettings`."""
        return self

    def apply(self, batch: Batch) -> Batch:
        """See `Interceptor`."""
        for name, value in self.headers.items():
            batch = with_header(batch, name, value)
        return batch


def with_header(batch: Batch, name: str, value: str) -> Batch:
    """Add a header to a batch.

    >>> with_header(Batch.of([b"a"]), "env", "test").headers
    [('env', b'test')]
    """
    return replace(batch, headers=[*batch.headers, (name, value.encode())])
