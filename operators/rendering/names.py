"""Names and texts of messages with all characters visible: data for a terminal, never commands."""

from __future__ import annotations

import re
from typing import Any

_LETTERS = (
    "\x00-\x1f\x7f-\x9f"  # C0, C1
    "\xad\u180e\u200b\u2060-\u2064\ufeff\U000e0000-\U000e007f"  # invisible
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f\ufff9-\ufffb"  # they reverse text, or annotate it
    "\u2028\u2029\ud800-\udfff"  # further line ends, and lone surrogates
)
CONTROLS = re.compile(f"[{_LETTERS}]")
_BUT_NEWLINES = re.compile(f"(?!\n)[{_LETTERS}]")
_BLANK = re.compile(r"[^\S ]|[\u115f\u1160\u2800\u3164\uffa0]")


def escaped(text: str, lines: bool = False) -> str:
    r"""Text with control characters escaped as in Python; with `lines`, line ends stay.

    >>> print(escaped("a\x1b[2J\nb\u202e"))
    a\x1b[2J\nb\u202e
    """
    return (_BUT_NEWLINES if lines else CONTROLS).sub(_python, text)


def visible_name(name: Any) -> str:
    r"""A name in which nothing can be overlooked: quoted if it is empty, or has invisible blanks.

    >>> print(*map(visible_name, ["a b", "", " a", "a\u3000", 7]))
    a b '' ' a' 'a\u3000' 7
    """
    text = str(name)
    if text and text == text.strip() and not _BLANK.search(text):
        return escaped(text)
    return f"'{_BLANK.sub(_python, escaped(text))}'"


def amount(count: int, noun: str) -> str:
    """A number of things, whose plural ends in s.

    >>> amount(1, "row"), amount(1234, "open window")
    ('1 row', '1,234 open windows')
    """
    return f"{count:,} {noun}{'s' * (count != 1)}"


def visible_key(key: Any) -> str:
    """An alert's key in one line: a value, a list of several, or None if there is none.

    >>> visible_key(["ABC", None, 1000]), visible_key("hall"), visible_key(None)
    ('ABC, None, 1000', 'hall', '')
    """
    return ", ".join(map(visible_name, [] if key is None else key if isinstance(key, list) else [key]))


def _python(match: re.Match[str]) -> str:
    letter = match[0]
    named = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
    number = ord(letter)
    mark, digits = ("x", 2) if number < 0x100 else ("u", 4) if number < 0x10000 else ("U", 8)
    return named.get(letter, f"\\{mark}{number:0{digits}x}")
