"""Lines matched by a single regular expression, with times and an optional syslog header."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from ...operators.formats.decode import Decoded
from ...operators.formats.messages import Messages
from ...operators.formats.reasons import Reason
from ...operators.formats.text.iso_times import read_times
from ...operators.formats.text.lines import refusing, texts_of
from ...operators.formats.text.local_times import in_zone
from ...operators.formats.text.syslog import in_latest_year

EPOCH, ISO, MILLISECONDS = "epoch", "iso", "milliseconds"
"""Times that are seconds since 1970, ISO 8601, and milliseconds since 1970."""

HEAD = (
    r"(?:<\d{1,3}>)?(?:1 )?(?:(?P<head_day>[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d)"
    r"|(?P<head_time>\d{4}-\d\d-\d\d[T ]\S+)):? (?:(?P<head_host>[^\s:]*[^\s:\[\]]) )?"
)
"""A syslog header up to the program's name."""

_UTC = pl.Datetime("us", "UTC")
_SHOWN = 60
_DAY = "%b %d %H:%M:%S"


@dataclass(frozen=True)
class PatternedLines:
    """A `Decoder` of lines that match a Rust regular expression; its named groups are the columns, all text.

    `time` is read from the group of that name by the first of `formats` that fits; the groups ``head_day``
    and ``head_time`` (`HEAD`) are used if a line has no time itself. Times without a zone are in `zone`.
    """

    name: str
    pattern: str
    formats: tuple[str, ...]
    zone: str = "UTC"
    within: str = ""
    """An expression whose first group is the time within the group ``rest``, if there is no group for it."""

    @property
    def expression(self) -> str:
        """The regular expression, in which a dot also matches line endings."""
        return f"(?s){self.pattern}"

    @property
    def groups(self) -> list[str]:
        """The names of its groups."""
        fields = pl.Series([""]).str.extract_groups(self.expression).dtype.fields  # type: ignore[attr-defined]
        return [field.name for field in fields if not field.name.isdigit()]

    @property
    def schema(self) -> dict[str, Any]:
        """The Polars types of its columns."""
        return {**dict.fromkeys(self.groups, pl.String()), "time": _UTC}

    def decode(self, messages: Messages) -> Decoded:
        """Return the rows of a batch, and why the other messages were refused."""
        texts, rows, refused = texts_of(messages)
        sent = pl.Series(messages.timestamp[rows]).cast(pl.Int64)
        sent_us = sent.set(sent < 0, None) * 1000
        groups = texts.str.extract_groups(self.expression).struct
        columns = {name: groups.field(name) for name in self.groups}
        known = texts.str.contains(self.expression)
        stamp = columns["rest"].str.extract(self.within) if self.within else columns.get("time")
        time = self._times(stamp, sent_us)
        if "head_day" in columns:
            day = in_latest_year(columns["head_day"].str.replace(" +", " "), _DAY, sent_us, self.zone)
            time = _either(_either(time, read_times(columns["head_time"])), day)
        for at in (time.is_null() | ~known).arg_true().to_list():
            what = "no time in" if known[at] else f"not a line of {self.name}:"
            refused[int(rows[at])] = Reason(
                f"not a line of {self.name}" if not known[at] else f"no time in a line of {self.name}",
                f"{what} {texts[at][:_SHOWN]!r}",
            )
        columns["time"] = time
        frame = pl.DataFrame([columns[name].alias(name) for name in self.schema])
        return refusing(frame, rows, refused)

    def _times(self, text: pl.Series | None, sent_us: pl.Series) -> pl.Series:
        nothing = pl.Series([None] * len(sent_us), dtype=_UTC)
        if text is None:
            return nothing
        result = nothing
        for form in self.formats:
            if not (result.is_null() & text.is_not_null()).any():
                break
            result = _either(result, self._read(text, form, sent_us))
        return result

    def _read(self, text: pl.Series, form: str, sent_us: pl.Series) -> pl.Series:
        if form in (EPOCH, MILLISECONDS):
            scale = 1e6 if form == EPOCH else 1e3
            return (text.cast(pl.Float64, strict=False) * scale).cast(pl.Int64, strict=False).cast(_UTC)
        if form == ISO:
            naive = text.str.replace(" ", "T", literal=True).str.to_datetime(
                "%FT%T%.f", time_unit="us", strict=False
            )
            return _either(in_zone(naive, self.zone, sent_us), read_times(text))
        if "%z" in form:
            return text.str.to_datetime(form, time_unit="us", strict=False).dt.convert_time_zone("UTC")
        return in_zone(text.str.to_datetime(form, time_unit="us", strict=False), self.zone, sent_us)


def _either(first: pl.Series, second: pl.Series) -> pl.Series:
    return first.zip_with(first.is_not_null(), second)
