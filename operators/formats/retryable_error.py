"""A resource that decoding needs is unavailable: no message is to blame, so none becomes a dead letter."""

from __future__ import annotations

from ...sketches.core.errors import StreamgaugeError


class Unavailable(StreamgaugeError):
    """Something that a decoder needs is unavailable, such as the schema registry.

    A decoder may raise it from `decode`. If `passing`, waiting helps: the consumer decodes the same messages
    again until it works; Spark fails the task and retries it. Otherwise the run ends with this error. Nothing
    is counted or refused either way.

    >>> import streamgauge as sg
    >>> raise sg.errors.Unavailable("the depot is closed")
    Traceback (most recent call last):
    streamgauge.operators.formats.retryable_error.Unavailable: the depot is closed
    """

    def __init__(self, message: str, passing: bool = True) -> None:
        super().__init__(message)
        self.passing = passing

    def __reduce__(self) -> tuple[type[Unavailable], tuple[str, bool]]:
        return Unavailable, (str(self), self.passing)
