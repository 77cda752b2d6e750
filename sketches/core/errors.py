"""The base of all errors that are this package's own."""


class StreamgaugeError(Exception):
    """What every error of streamgauge is; most are a `ValueError`, `RuntimeError` … of Python besides.

    >>> from streamgauge.sketches.hll import HLL
    >>> try:
    ...     HLL.from_bytes(b"")
    ... except StreamgaugeError as error:
    ...     print(isinstance(error, ValueError))
    True
    """


class RunError(StreamgaugeError, RuntimeError):
    """A run or a query can't go on, or can't be changed as requested; the message says why."""
