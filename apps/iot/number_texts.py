"""Numbers as devices and home automation write them: with a comma, with a unit, or as words.

``--set decimal=,`` reads a decimal comma, ``--set value_unit=°C`` numbers followed by that unit, and ``--set
words=ON=1,OFF=0,unavailable=`` these words, as numbers or as no reading. Anything else is refused for a
reason that names the setting.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl

from ...operators.formats.decode import Decoded, Decoder
from ...operators.formats.messages import Messages
from ...operators.formats.reasons import Reason
from ..app import Settings
from .devices.decoder import form_of_readings

USUAL = {"decimal": ".", "words": ""}

_NUMBER = r"[-+]?(?:\d[\d.,' ]*|\.\d+)(?:[eE][-+]?\d+)?"
_WITH_UNIT = re.compile(rf"({_NUMBER})\s*([^\W\d_]\S*|[%°″′]\S*)")
_SHOWN = 40
_USUAL_NAME = "value"


@dataclass(frozen=True)
class NumberTexts:
    """A `Decoder` that converts a text column of another decoder to numbers.

    An empty text is no reading. `words` are in lower case, with their numbers or null.

    >>> import streamgauge as sg
    >>> lines = sg.csv({"v": pl.String()}, header=True)
    >>> reads = NumberTexts(lines, "v", ",", "°C", (("on", 1.0), ("unavailable", None)))
    >>> texts = ["v\\n20", 'v\\n"1.020,5 °C"', "v\\nOn", "v\\nunavailable", "v\\n20 %"]
    >>> decoded = reads.decode(Messages.of([text.encode() for text in texts]))
    >>> decoded.frame["v"].to_list(), decoded.reasons
    ([20.0, 1020.5, 1.0, None], ["'20 %' has a unit; --set value_unit=% reads it"])
    """

    inner: Decoder
    column: str
    decimal: str = "."
    unit: str = ""
    words: tuple[tuple[str, float | None], ...] = ()
    version: ClassVar[int] = 1
    """Increased whenever the accepted forms change."""

    @property
    def schema(self) -> dict[str, Any]:
        """The Polars types of its columns."""
        return {**self.inner.schema, self.column: pl.Float64()}

    def decode(self, messages: Messages) -> Decoded:
        """Return the rows of a batch, and why the other messages were refused."""
        decoded = self.inner.decode(messages)
        text = decoded.frame[self.column]
        value = text.cast(pl.Float64, strict=False)
        wrong = text.is_not_null() & ~value.is_finite().fill_null(False)
        if wrong.any() or self.decimal == ",":
            value = text.to_frame("text").select(self._expression(pl.col("text"))).to_series()
            nothing = text.str.strip_chars().str.to_lowercase().is_in(["", *dict(self.words)])
            wrong = text.is_not_null() & ~value.is_finite().fill_null(False) & ~nothing
        frame = decoded.frame.with_columns(value.alias(self.column))
        reasons = {at: self._reason(text[at]) for at in wrong.arg_true()}
        if self.column == _USUAL_NAME:
            reasons |= _elsewhere(decoded, text, messages)
        whole = Decoded(frame, decoded.rows, decoded.refused, decoded.reasons, decoded.skipped)
        gone = np.zeros(len(text), bool)
        gone[list(reasons)] = True
        return whole.without(gone, [reasons[at] for at in sorted(reasons)])

    def _expression(self, text: pl.Expr) -> pl.Expr:
        text = text.str.strip_chars()
        lower, number = text.str.to_lowercase(), text
        if self.unit:
            number = number.str.strip_suffix(self.unit).str.strip_chars()
        if self.decimal == ",":
            # Before a comma, points and blanks separate thousands; JSON's own numbers only have a point.
            plain = number.str.replace_all(r"[.' ](\d{3})", "$1").str.replace(",", ".", literal=True)
            number = pl.when(number.str.contains(",", literal=True)).then(plain).otherwise(number)
        value = number.cast(pl.Float64, strict=False)
        for word, worth in self.words:
            value = pl.when(lower == word).then(pl.lit(worth, pl.Float64)).otherwise(value)
        return value

    def _reason(self, text: str) -> Reason:
        shown, text = repr(text[:_SHOWN]), text.strip()
        if self.decimal != "," and re.fullmatch(rf"[-+]?[\d.' ]*,\d+\s*(?:{re.escape(self.unit)})?", text):
            return _reason(shown, "has a decimal comma", "--set decimal=, reads it")
        if (match := _WITH_UNIT.fullmatch(text)) and match[2] != self.unit:
            return _reason(shown, "has a unit", f"--set value_unit={match[2]} reads it")
        if re.fullmatch(r"[^\W\d][\w ./-]*|[-–?]+", text):
            reads = f"--set words={text[:_SHOWN]}=1 reads it, words={text[:_SHOWN]}= leaves it out"
            return _reason(shown, "is a word", reads)
        return Reason("a value is not a number", f"{shown} is not a number")


def _elsewhere(decoded: Decoded, text: pl.Series, messages: Messages) -> dict[int, Reason]:
    """Return why rows without the usual field are refused, if their messages have readings in another
    form."""
    reasons = {}
    for at in text.is_null().arg_true():
        number = at if decoded.rows is None else int(decoded.rows[at])
        if name := form_of_readings(messages.value_at(number) or b"", messages.key[number].as_py()):
            kind = "no value, but readings of devices; --format devices reads them"
            reasons[at] = Reason(kind, f"no value, but readings of {name}; --format devices reads them")
    return reasons


def _reason(shown: str, what: str, setting: str) -> Reason:
    return Reason(f"a value {what}; {setting}", f"{shown} {what}; {setting}")


def number_texts(inner: Decoder, column: str, settings: Settings) -> NumberTexts:
    """Make a decoder from settings. Raises `ValueError` for invalid settings."""
    if (decimal := settings["decimal"]) not in (".", ","):
        raise ValueError(f"--set decimal must be . or , got {decimal!r}")
    words = tuple(words_in(settings["words"]).items())
    return NumberTexts(inner, column, decimal, settings["value_unit"], words)


def words_in(text: str) -> Mapping[str, float | None]:
    """Parse words and their numbers, null for none; words become lower case.

    >>> words_in("ON=1, OFF=0, unavailable=")
    {'on': 1.0, 'off': 0.0, 'unavailable': None}
    """
    words: dict[str, float | None] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        word, equals, worth = part.rpartition("=")
        try:
            number = float(worth) if worth.strip() else None
        except ValueError:
            number = math.nan
        if not equals or not word.strip() or (number is not None and not math.isfinite(number)):
            raise ValueError(f"--set words must be such as ON=1,OFF=0,unavailable=, got {part!r}")
        words[word.strip().lower()] = number
    return words
