"""A question about a table, parsed from the parameters of a URL, a JSON body or a command line.

Values are strings, or JSON values. `PARAMETERS` lists the parameters; the OpenAPI document is built from it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import Any, NamedTuple

from ...operators.table.merge import larger_windows
from ...operators.table.stored import moment
from ...operators.windows.durations import CalendarLength, calendar_length
from ...sketches.core.errors import StreamgaugeError
from ...sketches.core.values.item_kinds import from_text


class BadQuestion(StreamgaugeError, ValueError):
    """A question that is not valid; the message names the parameter and what to write."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: its values and their meaning, and the questions that have it (all if empty)."""

    type: str
    help: str
    of: tuple[str, ...] = ()
    many: bool = False


KINDS = {
    "rows": "The answers of each window and group, all columns or some, each with its bounds.",
    "distinct": "The number of distinct values, with bounds.",
    "top-k": "The most frequent values, with bounds of their counts.",
    "quantiles": "The values at chosen ranks, with bounds.",
    "cdf": "The share of values that are at most x, with bounds.",
    "frequency": "How often an item occurred, with bounds.",
    "membership": "Whether an item occurred.",
    "sample": "A sample of the values.",
    "sets": "Union, intersection, difference and Jaccard index of two sets, with bounds.",
}
"""The kinds of questions."""

MOST_VALUES = 1_000
"""How often a parameter may be repeated, such as ranks; the work for a question grows with each."""
MOST_KEYS = 10_000
"""The most values of a key that may be requested."""
MOST_ITEMS = 100_000
"""The largest k, because an answer has at most this many rows."""
MOST_ROWS = 2**31 - 1
"""The largest limit."""
LONGEST_US = 365_000 * 86_400_000_000
"""The longest span or window, a thousand years: longer ones exceed the range of times."""

_COLUMN = tuple(kind for kind in KINDS if kind != "rows")
_ITEM = ("frequency", "membership")

PARAMETERS = {
    "column": Parameter("text", "The column to query; required if several could answer.", _COLUMN),
    "columns": Parameter("text", "The columns to answer; all by default.", ("rows",), many=True),
    "from": Parameter("time", "Windows that start here or later, such as 2026-06-01T12:00 (UTC)."),
    "to": Parameter("time", "Windows that end here or earlier."),
    "last": Parameter(
        "length",
        "Windows within this length up to the end of the newest one, such as 1h or 7d; days and months "
        "follow the table's zone.",
    ),
    "open": Parameter("yes or no", "Whether windows that are still open count; they do by default."),
    "every": Parameter(
        "length",
        'Merge windows into ones of this length, such as 1h or 1mo; "window" leaves them, "span" merges all.',
    ),
    "zone": Parameter(
        "text",
        "Time zone of the windows of every=, such as Europe/Helsinki; default: the table's own, or UTC.",
    ),
    "offset": Parameter("length", "Shift of the windows of every=, such as 6h or -1h."),
    "by": Parameter("text", 'Keep this key, and merge the others; "none" merges all.', many=True),
    "null": Parameter("text", "Select the groups without this key.", many=True),
    "k": Parameter("number", "The number of items, 10 by default.", ("top-k",)),
    "q": Parameter("number", "A rank from 0 to 1; 0.5, 0.9 and 0.99 by default.", ("quantiles",), many=True),
    "x": Parameter("number", "A value.", ("cdf",), many=True),
    "item": Parameter(
        "text",
        "An item of the column's type: a number, a text or an ISO 8601 time; others are refused.",
        _ITEM,
        many=True,
    ),
    "as": Parameter(
        "text",
        "The type of items that look like numbers, if the column doesn't record it: text, whole or number "
        "(floating point).",
        _ITEM,
    ),
    "order": Parameter("text", "The column to order rows by, largest first if it begins with -.", ("rows",)),
    "limit": Parameter("number", "The number of rows, after ordering.", ("rows",)),
    "other": Parameter("text", "The column of the other set, by default the same.", ("sets",)),
    "other-from": Parameter("time", "Span of the other set; default: the span of the first.", ("sets",)),
    "other-to": Parameter("time", "End of the other set's span.", ("sets",)),
    "other-null": Parameter("text", "Like null, for the other set.", ("sets",), many=True),
}
"""All parameters; in addition ``key.NAME=VALUE``, and ``other-key.NAME=VALUE`` for the other of two sets."""

_KEY, _OTHER_KEY = "key.", "other-key."


class Written(str):
    """An item as text; the column decides its type."""


class Rollup(NamedTuple):
    """Windows to merge into: their length, their offset, and the zone whose clock they begin by."""

    every: str
    offset: str | None = None
    zone: str | None = None


@dataclass(frozen=True, slots=True)
class WindowSelection:
    """The selected windows and groups: times in int64 microseconds, and values of keys as given."""

    since: int | None = None
    until: int | None = None
    last: CalendarLength | None = None
    open: bool = True
    keys: tuple[tuple[str, tuple[Any, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """One question: its kind, the selected windows and groups, how they are merged, and the query.

    `every` is ``"window"`` (windows unchanged), ``"span"`` (all in one), or larger windows.
    """

    kind: str
    where: WindowSelection = WindowSelection()
    every: str | Rollup = "window"
    by: tuple[str, ...] | None = None
    column: str = ""
    columns: tuple[str, ...] = ()
    k: int = 10
    ranks: tuple[float, ...] = (0.5, 0.9, 0.99)
    values: tuple[float, ...] = ()
    items: tuple[Any, ...] = ()
    order: str = ""
    limit: int | None = None
    other: str = ""
    other_where: WindowSelection | None = None


def question(kind: str, given: Mapping[str, Sequence[Any]]) -> Question:
    """The question with these parameters. Raises `BadQuestion`.

    >>> question("top-k", {"last": ["1h"], "k": ["3"], "key.lang": ["en"]}).where.keys
    (('lang', ('en',)),)
    >>> question("top-k", {"lats": ["1h"]})
    Traceback (most recent call last):
    streamgauge.queries.question.question.BadQuestion: top-k takes no parameter "lats"; did you mean "last"?
    """
    if kind not in KINDS:
        raise BadQuestion(f'"{kind}" is not a question; there are {", ".join(KINDS)}')
    _check_names(kind, given)
    _check_lengths(given)
    one = _Parameters(given)
    rows = kind == "rows"
    where = _where(one, given, "", _KEY)
    other = None
    if kind == "sets":
        other_span = _where(one, given, "other-", _OTHER_KEY)
        spanned = other_span.since is not None or other_span.until is not None
        other = WindowSelection(
            other_span.since if spanned else where.since,
            other_span.until if spanned else where.until,
            None if spanned else where.last,
            where.open,
            other_span.keys,
        )
    by = one.many("by")
    items = tuple(_item(value, one.text("as")) for value in given.get("item", ()))
    result = Question(
        kind,
        where,
        _every(one, "window" if rows else "span"),
        None if by is None and rows else tuple(key for key in by or () if key != "none"),
        one.text("column"),
        tuple(one.many("columns") or ()),
        one.whole("k", 10, MOST_ITEMS),
        tuple(one.numbers("q", 0, 1) or (0.5, 0.9, 0.99)),
        tuple(one.numbers("x", -math.inf, math.inf)),
        items,
        one.text("order"),
        one.whole("limit", None, MOST_ROWS),
        one.text("other") or one.text("column"),
        other,
    )
    for needed, has in (("x", result.values), ("item", result.items)):
        if kind in PARAMETERS[needed].of and not has:
            raise BadQuestion(f"{kind} needs {needed}=, once or several times")
    if kind == "sets" and by and result.every != "span" and where != other and other is not None:
        raise BadQuestion(
            "sets: two spans or two selections of keys are compared as wholes; leave every= out"
        )
    return result


def _check_names(kind: str, given: Mapping[str, Any]) -> None:
    for name in given:
        if name.startswith(_KEY) or (name.startswith(_OTHER_KEY) and kind == "sets"):
            continue
        known = [other for other, one in PARAMETERS.items() if not one.of or kind in one.of]
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f'did you mean "{near[0]}"?' if near else f"it takes {', '.join(known)} and key.NAME"
            raise BadQuestion(f'{kind} takes no parameter "{name}"; {hint}')


def _check_lengths(given: Mapping[str, Sequence[Any]]) -> None:
    for name, values in given.items():
        most = MOST_KEYS if name.startswith((_KEY, _OTHER_KEY)) else MOST_VALUES
        if len(values) > most:
            raise BadQuestion(f"{name} must be given at most {most:,} times, got {len(values):,}")
        if name in ("by", "columns") and (twice := [v for n, v in enumerate(values) if v in values[:n]]):
            raise BadQuestion(f"{name} must name each key or column once, got {_short(twice[0])} twice")


class _Parameters:
    """Parses and validates parameters one by one."""

    def __init__(self, given: Mapping[str, Sequence[Any]]) -> None:
        self._given = given

    def single(self, name: str) -> Any:
        values = self._given.get(name, ())
        if len(values) > 1:
            raise BadQuestion(f"{name} is given {len(values)} times; it may be given once")
        return values[0] if values else None

    def text(self, name: str) -> str:
        value = self.single(name)
        if value is not None and not isinstance(value, str):
            raise BadQuestion(f"{name} must be text, got {_short(value)}")
        return value or ""

    def many(self, name: str) -> list[str] | None:
        if name not in self._given:
            return None
        for value in self._given[name]:
            if not isinstance(value, str) or not value:
                raise BadQuestion(f"{name} must be a name, got {_short(value)}")
        return list(self._given[name])

    def moment(self, name: str) -> int | None:
        text = self.text(name)
        try:
            time = moment(text or None)
        except ValueError as error:
            raise BadQuestion(f"{name}: {error}") from None
        return None if time is None else _microseconds(time)

    def whole(self, name: str, default: Any, most: int) -> Any:
        value = self.single(name)
        if value is None:
            return default
        try:
            number = int(value) if not isinstance(value, bool | float) else -1
        except (TypeError, ValueError):
            number = -1
        if not 1 <= number <= most:
            raise BadQuestion(f"{name} must be a whole number from 1 to {most:,}, got {_short(value)}")
        return number

    def numbers(self, name: str, low: float, high: float) -> list[float]:
        numbers = []
        for value in self._given.get(name, ()):
            try:
                number = math.nan if isinstance(value, bool) else float(value)
            except (TypeError, ValueError, OverflowError):
                number = math.nan
            if not low <= number <= high:
                span = "" if high == math.inf else f" from {low:g} to {high:g}"
                raise BadQuestion(f"{name} must be a number{span}, got {_short(value)}")
            numbers.append(number)
        return numbers

    def yes(self, name: str) -> bool:
        value = self.single(name)
        if value is None or value is True or value in ("true", "yes", "1"):
            return True
        if value is False or value in ("false", "no", "0"):
            return False
        raise BadQuestion(f"{name} must be true or false, got {_short(value)}")


def _where(one: _Parameters, given: Mapping[str, Sequence[Any]], prefix: str, key: str) -> WindowSelection:
    since, until = one.moment(f"{prefix}from"), one.moment(f"{prefix}to")
    last = None if prefix else _length(one.text("last"), "last")
    if last is not None and (since is not None or until is not None):
        raise BadQuestion("last= is a span by itself; leave out from= and to=, or last=")
    if since is not None and until is not None and since >= until:
        raise BadQuestion(f"{prefix}from must be before {prefix}to")
    keys: dict[str, list[Any]] = {
        name.removeprefix(key): list(values) for name, values in given.items() if name.startswith(key)
    }
    for name in one.many(f"{prefix}null") or ():
        keys.setdefault(name, []).append(None)
    return WindowSelection(since, until, last, one.yes("open"), tuple((n, tuple(v)) for n, v in keys.items()))


def _every(one: _Parameters, usual: str) -> str | Rollup:
    text, offset, zone = one.text("every"), one.text("offset") or None, one.text("zone") or None
    if text in ("", "window", "span"):
        if offset or zone:
            raise BadQuestion(
                "offset and zone place the windows of every=, which is missing; set it, as in every=1d"
            )
        return text or usual
    length = _length(text, "every")
    assert length is not None
    try:
        larger_windows("every", text, offset, zone)
    except ValueError as error:
        raise BadQuestion(str(error)) from None
    return Rollup(text, offset, zone)


def _length(text: str, name: str) -> CalendarLength | None:
    if not text:
        return None
    try:
        length = calendar_length(text)
    except ValueError as error:
        raise BadQuestion(f"{name}: {error}") from None
    if length.mean_us < 1:
        raise BadQuestion(f"{name} must be longer than nothing, got {text!r}")
    if length.mean_us > LONGEST_US:
        raise BadQuestion(f"{name} must be at most {LONGEST_US // 86_400_000_000}d, got {_short(text)}")
    return length


def _short(value: Any) -> str:
    """A value for an error message, shortened if it is large."""
    try:
        text = repr(value)
    except ValueError:  # Python refuses to print numbers with thousands of digits
        text = "a number of too many digits"
    return text if len(text) <= 80 else f"{text[:77]}..."


def _item(value: Any, kind: str) -> Any:
    """An item in its stated type; text without a stated type is `Written`."""
    if kind not in ("", "text", "whole", "number"):
        raise BadQuestion(f"as must be text, whole or number, got {kind}")
    if not isinstance(value, str):
        if value is None or isinstance(value, list | dict):
            raise BadQuestion(f"item must be a text, a number, or true or false, got {_short(value)}")
        return value
    if not kind:
        return Written(value)
    if kind == "text":
        return value
    try:
        return float(value) if kind == "number" else int(value)
    except ValueError:
        raise BadQuestion(f"item is {_short(value)}, which is not a {kind} number") from None


def item_of(item: Any, item_kind: str | None, family: str) -> Any:
    """An item as a value of this kind (`sketches.core.values.item_kinds`); None if the kind is unknown.

    Raises `BadQuestion` for text that may also be a number, and `SketchError` for an item that is not a value
    of the kind.

    >>> item_of(Written("5"), "long", "bloom"), item_of(Written("5"), "string", "bloom"), item_of(5, None, "")
    (5, '5', 5)
    """
    if not isinstance(item, Written):
        return item
    if item_kind is not None:
        return from_text(str(item), item_kind, family)
    if _like_a_number(item):
        raise BadQuestion(
            f"item={item} may be a text or a number, which are different items; add as=text, as=whole or "
            "as=number"
        )
    return str(item)


def _like_a_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _microseconds(at: datetime) -> int:
    whole = int(at.replace(microsecond=0).timestamp())
    return whole * 1_000_000 + at.microsecond
