"""Which of a run's streams an error concerns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def in_stream(name: str) -> Iterator[None]:
    """Add the stream's name to errors raised within the block; a run's only stream has no name.

    The errors keep their type, for callers that catch it, and get a note that `in_words` includes.

    >>> try:
    ...     with in_stream("users"):
    ...         raise ValueError("no such column")
    ... except ValueError as error:
    ...     print(in_words(error))
    no such column (in the stream 'users')
    """
    try:
        yield
    except Exception as error:
        if name:
            error.add_note(f"in the stream {name!r}")
        raise


def in_words(error: BaseException) -> str:
    """An error's message, with its notes."""
    return " ".join([str(error), *(f"({note})" for note in getattr(error, "__notes__", ()))])
