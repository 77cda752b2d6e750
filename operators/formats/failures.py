"""Errors of the user's own code, such as decoders and functions in expressions, reported in one line.

Such code may raise anything; `SystemExit` and Polars' panics are not even an `Exception`. No input may end a
stream, so a message on which it fails is refused.
"""

from __future__ import annotations

import signal
import threading

from ...sketches.core.lazy import pl
from .reasons import Reason, kind_of


def why(error: BaseException) -> Reason:
    """A message's error as one line of text; its kind is that of the error.

    Raises the error again if it is a `KeyboardInterrupt`, which only the main thread gets.

    >>> why(ValueError("no price")), why(SystemExit(3))
    ('ValueError: no price', 'SystemExit: 3')
    """
    if isinstance(error, KeyboardInterrupt) and _may_be_interrupted():
        raise error
    try:
        # The message of a Polars error, without the query plan below it.
        text = str(error).split("\n")[0]
    except Exception:
        text = "an error without a readable message"
    if isinstance(error, pl.exceptions.PolarsError):
        return Reason(kind_of(text.split(": ")[0]), text)
    name = type(error).__name__
    return Reason(name, f"{name}: {text}")


def _may_be_interrupted() -> bool:
    first = threading.current_thread() is threading.main_thread()
    return first and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
