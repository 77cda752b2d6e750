"""The base class of this package's errors."""


class StreamgaugeError(Exception):
    """The base of all errors of streamgauge; most also derive from Python's `ValueError`, `RuntimeError` ….

    >>> from streamgauge.sketches.hll import HLL
    >>> try:
    ...     HLL.from_bytes(b"")
    ... except StreamgaugeError as error:
    ...     print(isinstance(error, ValueError))
    True
    """


class RunError(StreamgaugeError, RuntimeError):
    """A run or a query can't continue, or can't be changed as requested; the message gives the reason."""
