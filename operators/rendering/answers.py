"""Answers formatted for people: one short line each, including bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime
from typing import Any

from .names import escaped, visible_name

_SHOWN = (0.5, 0.9, 0.99)


UNKNOWN = "–"


def number(value: float | None) -> str:
    """A number with its significant digits only; a dash for None, which also stands for infinities and NaN.

    >>> number(1234567.8), number(3.0), number(0.123456), number(None)
    ('1,234,568', '3', '0.1235', '–')
    """
    if value is None:
        return UNKNOWN
    whole = math.isinf(value) or abs(value) >= 1000 or value == value // 1
    return f"{value:,.0f}" if whole else f"{value:,.4g}"


def _count(count: float | None) -> str:
    """A count without decimals."""
    return UNKNOWN if count is None else f"{count:,.0f}"


def bounded(
    estimate: float | None,
    lower: float | None,
    upper: float | None,
    write: Callable[[float | None], str] = number,
) -> str:
    """An estimate, with its bounds if there are any and they differ from it.

    >>> bounded(120.0, 117.2, 123.4), bounded(7, 7, 7), bounded(7, None, None)
    ('120 (117.2 to 123.4)', '7', '7')
    """
    if write(lower) == write(upper):
        return write(estimate)
    return f"{write(estimate)} ({write(lower)} to {write(upper)})"


def plain(text: str) -> str:
    r"""Text from elsewhere in one line, with controls escaped and characters of unpredictable width removed.

    >>> print(plain("so\n\x1b[2Jproud \u2764\ufe0f"))
    so \x1b[2Jproud ❤
    """
    return escaped(" ".join(text.split()).replace("\N{VARIATION SELECTOR-16}", ""))


def answer(value: Any, items: int = 3) -> str:
    """Any aggregate's answer in a few short lines; the first `items` of lists, and three quantiles.

    >>> from datetime import date
    >>> answer(date(2026, 6, 1)), answer(b"\\x01\\xff"), answer(float("nan"))
    ('2026-06-01', '01ff', 'nan')
    >>> answer({"estimate": 120.3, "lower": 117.2, "upper": 123.4})
    '120 (117 to 123)'
    >>> answer([{"item": "cats", "estimate": 5, "lower": 5, "upper": 5}])
    'cats 5'
    """
    if value is None:
        return UNKNOWN
    if isinstance(value, bool | str):
        return plain(str(value))
    if isinstance(value, int | float):
        return number(value)
    if isinstance(value, datetime):
        return when(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list):
        return "\n".join(_item(item) for item in value[:items])
    if not isinstance(value, dict):
        return str(value)  # a date, a time of day, a duration, a decimal
    if "estimate" in value:
        return bounded(value["estimate"], value["lower"], value["upper"], _count)
    if "quantiles" in value:
        shown = [q for q in value["quantiles"] if q["q"] in _SHOWN] or value["quantiles"][:items]
        return "\n".join(
            f"p{number(100 * q['q'])} {bounded(q['value'], q['lower'], q['upper'])}" for q in shown
        )
    if "values" in value:
        return answer(value["values"], items)
    return ", ".join(f"{key} {answer(part)}" for key, part in value.items())


def cell(key: Any) -> str:
    """A key in one line.

    >>> cell(1000), cell(b"\\x01"), cell(None)
    ('1000', '01', 'None')
    """
    return key.hex() if isinstance(key, bytes) else visible_name(key).replace("\N{VARIATION SELECTOR-16}", "")


def _item(item: Any) -> str:
    if isinstance(item, dict) and "weight" in item:
        return f"{cell(item['item'])} (weight {number(item['weight'])})"
    if isinstance(item, dict) and "item" in item:
        return f"{cell(item['item'])} {bounded(item['estimate'], item['lower'], item['upper'])}"
    return answer(item)


def when(moment: datetime) -> str:
    """A time without its trailing zeros.

    >>> when(datetime(2026, 6, 1, 12)), when(datetime(2026, 6, 1, 12, 0, 5))
    ('2026-06-01 12:00', '2026-06-01 12:00:05')
    """
    text = f"{moment:%Y-%m-%d %H:%M}"
    if moment.microsecond:
        return f"{text}:{moment:%S.%f}"
    return f"{text}:{moment:%S}" if moment.second else text


def span(start: datetime, end: datetime) -> str:
    """A window, with its day named once.

    >>> span(datetime(2026, 6, 1, 12), datetime(2026, 6, 1, 12, 30))
    '2026-06-01 12:00 – 12:30'
    """
    return f"{when(start)} – {when(end).removeprefix(f'{start:%Y-%m-%d} ')}"
