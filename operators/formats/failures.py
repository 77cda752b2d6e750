"""Errors of the user's own code, such as decoders and functions in expressions, told in one line.

Such code may raise anything; `SystemExit` and Polars' panics are not even an `Exception`. No input may end a
stream, so a message on which it fails is refused.
"""

from __future__ import annotations

import signal
import threading

import polars as pl


def why(error: BaseException) -> str:
    """What a message failed with, as one line of text.

    Raises the error again if it is Ctrl-C, which only the main thread gets.

    >>> why(ValueError("no price")), why(SystemExit(3))
    ('ValueError: no price', 'SystemExit: 3')
    """
    if isinstance(error, KeyboardInterrupt) and _may_be_interrupted():
        raise error
    try:
        # The message of a Polars error without the plan that it prints below.
        text = str(error).split("\n")[0]
    except Exception:
        text = "an error without a readable message"
    return text if isinstance(error, pl.exceptions.PolarsError) else f"{type(error).__name__}: {text}"


def _may_be_interrupted() -> bool:
    first = threading.current_thread() is threading.main_thread()
    return first and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
