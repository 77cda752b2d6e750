"""The error of an outlet that did not accept a notification."""

from __future__ import annotations

from ....sketches.core.errors import StreamgaugeError


class OutletError(StreamgaugeError):
    """An outlet did not accept a notification: permanently, or temporarily if it `may_pass`.

    `after` is the number of seconds to wait that the outlet requested, if any. The message contains no
    secret.
    """

    def __init__(self, text: str, may_pass: bool = False, after: float = 0.0) -> None:
        super().__init__(text)
        self.may_pass, self.after = may_pass, after
