"""Which of several streams in a run something is about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def in_stream(name: str) -> Iterator[None]:
    """Let errors within the block say which stream they are of; the only stream of a run has no name.

    They keep their own type, for callers that catch it, and get a note that `in_words` shows, too.

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
    """An error in words, with its notes."""
    return " ".join([str(error), *(f"({note})" for note in getattr(error, "__notes__", ()))])
