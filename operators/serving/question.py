"""What is asked of a table, read from parameters: those of a URL, of a JSON body and of a command line alike.

Values are texts, or what JSON has. `PARAMETERS` says which there are; the OpenAPI document is made of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import Any

from ..definition.durations import microseconds
from ..table.stored import moment
from .rollups import Every


class BadQuestion(ValueError):
    """A question that can't be asked; the message names the parameter and what to write."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: what its values are and mean, and of which questions it is; without any, of all."""

    type: str
    help: str
    of: tuple[str, ...] = ()
    many: bool = False


KINDS = {
    "rows": "The answers of each window and group, all columns or some, each with its bounds.",
    "distinct": "How many different values, with bounds.",
    "top-k": "The most frequent values, with bounds of their counts.",
    "quantiles": "The values at chosen ranks, with bounds.",
    "cdf": "The share of values that are at most x, with bounds.",
    "frequency": "How often an item occurred, with bounds.",
    "membership": "Whether an item occurred.",
    "sample": "Values that stand for all.",
    "sets": "Union, intersection, difference and Jaccard index of two sets, with bounds.",
}
"""The kinds of questions."""

_COLUMN = tuple(kind for kind in KINDS if kind != "rows")
_ITEM = ("frequency", "membership")

PARAMETERS = {
    "column": Parameter("text", "The column that is asked; needed where several could be meant.", _COLUMN),
    "columns": Parameter("text", "The columns to answer; all unless named.", ("rows",), many=True),
    "from": Parameter("time", "Windows that start here or later, such as 2026-06-01T12:00 (UTC)."),
    "to": Parameter("time", "Windows that end here or earlier."),
    "last": Parameter("length", "Windows within this length up to the end of the newest one, such as 1h."),
    "open": Parameter(
        "yes or no", "Whether windows that are still open count; they do unless told otherwise."
    ),
    "every": Parameter(
        "length", 'Merge windows into ones of this length; "window" leaves them, "span" makes one of all.'
    ),
    "by": Parameter("text", 'Keep this key, and merge the others; "none" merges all.', many=True),
    "null": Parameter("text", "Of this key, take the groups that have none.", many=True),
    "k": Parameter("number", "How many items, 10 unless told.", ("top-k",)),
    "q": Parameter("number", "A rank from 0 to 1; 0.5, 0.9 and 0.99 unless told.", ("quantiles",), many=True),
    "x": Parameter("number", "A value.", ("cdf",), many=True),
    "item": Parameter("text", "An item.", _ITEM, many=True),
    "as": Parameter(
        "text", "What items that look like numbers are: text, whole or number (floating point).", _ITEM
    ),
    "order": Parameter("text", "The column to order rows by, biggest first if it begins with -.", ("rows",)),
    "limit": Parameter("number", "How many rows, after ordering.", ("rows",)),
    "other": Parameter("text", "The column of the other set, the same unless named.", ("sets",)),
    "other-from": Parameter("time", "The span of the other set, that of the first unless told.", ("sets",)),
    "other-to": Parameter("time", "Where the span of the other set ends.", ("sets",)),
    "other-null": Parameter("text", "As null, of the other set.", ("sets",), many=True),
}
"""All parameters; beside them ``key.NAME=VALUE``, and ``other-key.NAME=VALUE`` of the other of two sets."""

_KEY, _OTHER_KEY = "key.", "other-key."


@dataclass(frozen=True, slots=True)
class Where:
    """Which windows and groups: times in int64 microseconds, and the wanted values of keys, as given."""

    since: int | None = None
    until: int | None = None
    last: int | None = None
    open: bool = True
    keys: tuple[tuple[str, tuple[Any, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """One question: its kind, of which windows and groups, merged how, and what is asked of the merged."""

    kind: str
    where: Where = Where()
    every: Every = "window"
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
    other_where: Where | None = None


def question(kind: str, given: Mapping[str, Sequence[Any]]) -> Question:
    """The question that these parameters ask. Raises `BadQuestion`.

    >>> question("top-k", {"last": ["1h"], "k": ["3"], "key.lang": ["en"]}).where.keys
    (('lang', ('en',)),)
    >>> question("top-k", {"lats": ["1h"]})
    Traceback (most recent call last):
    streamgauge.operators.serving.question.BadQuestion: top-k takes no parameter "lats"; did you mean "last"?
    """
    if kind not in KINDS:
        raise BadQuestion(f'"{kind}" is not a question; there are {", ".join(KINDS)}')
    _check_names(kind, given)
    one = _One(given)
    rows = kind == "rows"
    where = _where(one, given, "", _KEY)
    other = None
    if kind == "sets":
        asked = _where(one, given, "other-", _OTHER_KEY)
        spanned = asked.since is not None or asked.until is not None
        other = Where(
            asked.since if spanned else where.since,
            asked.until if spanned else where.until,
            None if spanned else where.last,
            where.open,
            asked.keys,
        )
    by = one.many("by")
    items = tuple(_item(value, one.text("as")) for value in given.get("item", ()))
    found = Question(
        kind,
        where,
        _every(one.text("every"), "window" if rows else "span"),
        None if by is None and rows else tuple(key for key in by or () if key != "none"),
        one.text("column"),
        tuple(one.many("columns") or ()),
        one.whole("k", 10),
        tuple(one.numbers("q", 0, 1) or (0.5, 0.9, 0.99)),
        tuple(one.numbers("x", -math.inf, math.inf)),
        items,
        one.text("order"),
        one.whole("limit", None),
        one.text("other") or one.text("column"),
        other,
    )
    for needed, has in (("x", found.values), ("item", found.items)):
        if kind in PARAMETERS[needed].of and not has:
            raise BadQuestion(f"{kind}: say which with {needed}=, once or more often")
    if kind == "sets" and by and found.every != "span" and where != other and other is not None:
        raise BadQuestion("sets: of two spans or two choices of keys, every= can't keep the windows apart")
    return found


def _check_names(kind: str, given: Mapping[str, Any]) -> None:
    for name in given:
        if name.startswith(_KEY) or (name.startswith(_OTHER_KEY) and kind == "sets"):
            continue
        known = [other for other, one in PARAMETERS.items() if not one.of or kind in one.of]
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f'did you mean "{near[0]}"?' if near else f"it takes {', '.join(known)} and key.NAME"
            raise BadQuestion(f'{kind} takes no parameter "{name}"; {hint}')


class _One:
    """The given parameters one by one, each as what it must be."""

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
            raise BadQuestion(f"{name} is {value!r}; it must be text")
        return value or ""

    def many(self, name: str) -> list[str] | None:
        if name not in self._given:
            return None
        for value in self._given[name]:
            if not isinstance(value, str) or not value:
                raise BadQuestion(f"{name} is {value!r}; it must be a name")
        return list(self._given[name])

    def moment(self, name: str) -> int | None:
        text = self.text(name)
        try:
            found = moment(text or None)
        except ValueError as error:
            raise BadQuestion(f"{name}: {error}") from None
        return None if found is None else _microseconds(found)

    def whole(self, name: str, default: Any) -> Any:
        value = self.single(name)
        if value is None:
            return default
        try:
            number = int(value) if not isinstance(value, bool | float) else -1
        except ValueError:
            number = -1
        if number < 1:
            raise BadQuestion(f"{name} is {value!r}; it must be a whole number from 1 on")
        return number

    def numbers(self, name: str, low: float, high: float) -> list[float]:
        found = []
        for value in self._given.get(name, ()):
            try:
                number = math.nan if isinstance(value, bool) else float(value)
            except (TypeError, ValueError):
                number = math.nan
            if not low <= number <= high:
                span = "" if high == math.inf else f" from {low:g} to {high:g}"
                raise BadQuestion(f"{name} is {value!r}; it must be a number{span}")
            found.append(number)
        return found

    def yes(self, name: str) -> bool:
        value = self.single(name)
        if value is None or value is True or value in ("true", "yes", "1"):
            return True
        if value is False or value in ("false", "no", "0"):
            return False
        raise BadQuestion(f"{name} is {value!r}; it must be true or false")


def _where(one: _One, given: Mapping[str, Sequence[Any]], prefix: str, key: str) -> Where:
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
    return Where(since, until, last, one.yes("open"), tuple((n, tuple(v)) for n, v in keys.items()))


def _every(text: str, usual: str) -> Every:
    if text in ("", "window", "span"):
        return text or usual
    found = _length(text, "every")
    assert found is not None
    return found


def _length(text: str, name: str) -> int | None:
    if not text:
        return None
    try:
        found = microseconds(text)
    except ValueError as error:
        raise BadQuestion(f"{name}: {error}") from None
    if found < 1:
        raise BadQuestion(f"{name} is {text!r}; it must be longer than nothing")
    return found


def _item(value: Any, kind: str) -> Any:
    """An item as its column has it; of a text that looks like a number it must be told what it is."""
    if kind not in ("", "text", "whole", "number"):
        raise BadQuestion(f'as is "{kind}"; it may be text, whole or number')
    if not isinstance(value, str):
        if value is None or isinstance(value, list | dict):
            raise BadQuestion(f"item is {value!r}; it must be a text, a number, or true or false")
        return value
    if kind == "text":
        return value
    try:
        number: int | float = float(value) if kind == "number" else int(value)
    except ValueError:
        if kind:
            raise BadQuestion(f"item is {value!r}, which is not a {kind} number") from None
        if not _like_a_number(value):
            return value
        number = 0
    if not kind:
        raise BadQuestion(
            f"item={value} may be a text or a number, which are different items; add as=text, as=whole or "
            "as=number"
        )
    return number


def _like_a_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _microseconds(at: datetime) -> int:
    whole = int(at.replace(microsecond=0).timestamp())
    return whole * 1_000_000 + at.microsecond
