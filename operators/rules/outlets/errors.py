"""That an outlet did not take a notification."""

from __future__ import annotations

from ....sketches.core.errors import StreamgaugeError


class OutletError(StreamgaugeError):
    """An outlet did not take a notification: for good, or for now if it `may_pass`.

    `after` is for how many seconds it wants nothing, if it said so. The message holds no secret.
    """

    def __init__(self, text: str, may_pass: bool = False, after: float = 0.0) -> None:
        super().__init__(text)
        self.may_pass, self.after = may_pass, after
