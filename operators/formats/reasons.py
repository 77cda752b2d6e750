"""Why messages are refused: sentences that group, whatever the values in them."""

from __future__ import annotations

import re

_VALUES = re.compile(r"'[^']*'|(?<!\w)-?\d[\d.e+-]*")


class Reason(str):
    """Why a message is refused, in words; its `kind` says the same without the message's values.

    Thousands of messages have thousands of reasons, but few kinds: those are the `reason` of a dead letter,
    and what is counted by. A decoder of your own gives one where a reason names a value. The kind of a plain
    string is the string without its numbers and what it has in single quotes.

    >>> import streamgauge as sg
    >>> reason = sg.formats.Reason("a price that is not a number", "the price 'cheap' is not a number")
    >>> reason, reason.kind
    ("the price 'cheap' is not a number", 'a price that is not a number')
    """

    __slots__ = ("kind",)
    kind: str

    def __new__(cls, kind: str, text: str | None = None) -> Reason:
        """A kind, and the whole sentence if that says more."""
        reason = super().__new__(cls, kind if text is None else text)
        reason.kind = kind
        return reason

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return self.kind, str(self)


def kind_of(reason: str) -> str:
    """The kind of a reason.

    >>> import streamgauge as sg
    >>> kind_of("'cheap' is no price: byte 17"), kind_of(sg.formats.Reason("no price", "no price: byte 17"))
    ('… is no price: byte …', 'no price')
    """
    return reason.kind if isinstance(reason, Reason) else _VALUES.sub("…", reason)


def preceded(before: str, reason: str, kind_before: str | None = None) -> Reason:
    """A reason with words before it, and its kind with these or with others.

    >>> import streamgauge as sg
    >>> found = preceded("record 7: ", sg.formats.Reason("no price", "no price: byte 17"), "")
    >>> found, found.kind
    ('record 7: no price: byte 17', 'no price')
    """
    start = before if kind_before is None else kind_before
    return Reason(start + kind_of(reason), before + reason)


def reason_of(error: Exception) -> str:
    """The reason that an error was raised with, as it was if it is a `Reason`."""
    given = error.args[0] if error.args else ""
    return given if isinstance(given, Reason) else str(error)
