"""Why messages are refused: reasons that can be grouped whatever values they mention."""

from __future__ import annotations

import re

_VALUES = re.compile(r"'[^']*'|(?<!\w)-?\d[\d.e+-]*")


class Reason(str):
    """Why a message is refused; its `kind` is the same text without the message's values.

    Thousands of messages may have thousands of reasons but only a few kinds. The kind is the `reason` of a
    dead letter, and reasons are counted by it. In your own decoder, use a `Reason` if the text mentions a
    value. The kind of a plain string is the string without numbers and without text in single quotes.

    >>> import streamgauge as sg
    >>> reason = sg.formats.Reason("a price that is not a number", "the price 'cheap' is not a number")
    >>> reason, reason.kind
    ("the price 'cheap' is not a number", 'a price that is not a number')
    """

    __slots__ = ("kind",)
    kind: str

    def __new__(cls, kind: str, text: str | None = None) -> Reason:
        """Create a reason from its kind, and the whole sentence if that contains more."""
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
    """Prefix a reason; its kind gets the same prefix or another one.

    >>> import streamgauge as sg
    >>> found = preceded("record 7: ", sg.formats.Reason("no price", "no price: byte 17"), "")
    >>> found, found.kind
    ('record 7: no price: byte 17', 'no price')
    """
    start = before if kind_before is None else kind_before
    return Reason(start + kind_of(reason), before + reason)


def reason_of(error: Exception) -> str:
    """The reason in an error, unchanged if it is a `Reason`."""
    given = error.args[0] if error.args else ""
    return given if isinstance(given, Reason) else str(error)
