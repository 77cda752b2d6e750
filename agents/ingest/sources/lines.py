"""Find the lines of a block, and the lines that belong together."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import pyarrow.compute as pc

from ..batch import lines_to_arrow

_NEWLINE, _RETURN = 10, 13
LongLines = Literal["dead_letter", "pieces"]
"""How lines that are too long are handled: as a dead letter, or as several messages."""


def split_lines(data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""Return starts and lengths (int64) of the lines of `data` (uint8), which ends with a newline if any.

    Neither ``\\n`` nor ``\\r\\n`` belongs to a line.

    >>> starts, lengths = split_lines(np.frombuffer(b"one\r\n\ntwo\n", np.uint8))
    >>> starts.tolist(), lengths.tolist()
    ([0, 5, 6], [3, 0, 3])
    """
    ends = np.flatnonzero(data == _NEWLINE)
    starts = np.empty_like(ends)
    if len(ends):
        starts[0] = 0
        starts[1:] = ends[:-1] + 1
    # For an empty line, the byte before is the previous line's newline, or the block's last for the first
    # line.
    crlf = data[ends - 1] == _RETURN
    crlf &= ends > starts
    return starts, ends - starts - crlf


@dataclass(frozen=True, kw_only=True)
class Multiline:
    """Messages of several lines: each begins with a line that the regular expression `start` matches.

    The regular expression uses RE2 syntax. A message is complete if nothing has followed for `seconds`; a
    message of more than `lines` lines is split there.
    """

    start: str
    seconds: float = 1.0
    lines: int = 10_000

    def __post_init__(self) -> None:
        check_regex("start", self.start)
        if self.lines < 1:
            raise ValueError(f"lines must be an integer ≥ 1, got {self.lines}")

    def begins(self, data: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Return which lines begin a message: lines that match, and lines after too many others."""
        begins = pc.match_substring_regex(lines_to_arrow(data, starts, lengths), self.start)
        firsts = begins.to_numpy(zero_copy_only=False).copy()
        if len(firsts):
            firsts[0] = True
        at = np.flatnonzero(firsts)
        for first, end in zip(at.tolist(), [*at[1:].tolist(), len(firsts)]):
            firsts[first : end : self.lines] = True
        return firsts

    @cached_property
    def label(self) -> str:
        """The expression's text, for messages."""
        return f"multiline.start = {self.start!r}"


def check_regex(name: str, pattern: str) -> None:
    """Raise `ValueError` for anything but a regular expression in RE2 syntax.

    >>> check_regex("start", "(")
    Traceback (most recent call last):
    ValueError: start must be a regular expression, got '(': missing ): (
    """
    try:
        pc.match_substring_regex("", pattern)
    except Exception as error:
        why = re.sub(r"^Invalid regular expression: ", "", str(error))
        raise ValueError(f"{name} must be a regular expression, got {pattern!r}: {why}") from None
