"""Standard input, line by line."""

from __future__ import annotations

import os
import select
from dataclasses import dataclass

import numpy as np

from ..batch import Batch, Positions
from ..component import Place
from .lines import split_lines

_BLOCK = 1024 * 1024
_SHOWN = 100_000


@dataclass(frozen=True, kw_only=True)
class Stdin:
    """The lines of standard input; the agent ends at its end. Lines of more than `max_line` bytes are dead
    letters.
    """

    max_line: int = 16 * 1024 * 1024

    def open(self, place: Place, positions: Positions) -> StdinSource:
        """See `SourceSettings`."""
        return StdinSource(0, self.max_line)


class StdinSource:
    """A `Source` of the lines of a descriptor."""

    waited_for, finite = False, True

    def __init__(self, descriptor: int, max_line: int) -> None:
        self._descriptor, self._max_line = descriptor, max_line
        self._rest = bytearray()
        self._ended = False

    @property
    def ended(self) -> bool:
        """See `Source`."""
        return self._ended and not self._rest

    def read(self, seconds: float) -> Batch | None:
        """See `Source`."""
        if not self._ended and select.select([self._descriptor], [], [], seconds)[0]:
            data = os.read(self._descriptor, _BLOCK)
            self._ended = not data
            self._rest += data
            end = self._rest.rfind(b"\n") + 1
        else:
            end = 0
        if self._ended and self._rest:
            self._rest += b"" if self._rest.endswith(b"\n") else b"\n"
            end = len(self._rest)
        if not end:
            return None
        block = np.frombuffer(bytes(self._rest[:end]), np.uint8)
        del self._rest[:end]
        starts, lengths = split_lines(block)
        return Batch(block, starts, lengths, "stdin").without_long(self._max_line, _SHOWN)

    def close(self) -> None:
        """See `Source`."""
