"""What may be raised by code of the user's that looks at messages, and how it is told of the one it fails on.

Decoders and functions in expressions may raise anything: `SystemExit`, and Polars' panics, are no
`Exception`. No input may end a stream, so a message on which they fail is refused.
"""

from __future__ import annotations

import signal
import threading

import polars as pl


def why(error: BaseException) -> str:
    """What a message failed with, in one line.

    Raises the error again if it is Ctrl-C, which only the first thread is told of.

    >>> why(ValueError("no price")), why(SystemExit(3))
    ('ValueError: no price', 'SystemExit: 3')
    """
    if isinstance(error, KeyboardInterrupt) and _may_be_interrupted():
        raise error
    try:
        # Of a Polars error, what it says, without the plan that it draws below.
        text = str(error).split("\n")[0]
    except Exception:
        text = "an error that can't be told"
    return text if isinstance(error, pl.exceptions.PolarsError) else f"{type(error).__name__}: {text}"


def _may_be_interrupted() -> bool:
    first = threading.current_thread() is threading.main_thread()
    return first and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
