"""The options of a run, looked at before anything is asked of a broker."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, get_args

from .merge.merger import DeliveryName

_NAME = re.compile(r"[A-Za-z0-9._-]{1,200}")
"""What a topic may be named, with room for what follows the group's name in that of its table topic."""


def check(options: Mapping[str, Any]) -> None:
    """Raises `ValueError` or `TypeError`, naming the option, for what a run can't be started with.

    >>> check({"workers": 0})
    Traceback (most recent call last):
    ValueError: workers is 0; it is a whole number from 1 on
    """
    for name, given in options.items():
        if (known := _CHOICES.get(name)) is not None and given not in known:
            raise ValueError(f"{name} is {given!r}; it can be {' or '.join(map(repr, known))}")
        if name in _COUNTS and (type(given) is not int or given < _COUNTS[name]):
            raise ValueError(f"{name} is {given!r}; it is a whole number from {_COUNTS[name]} on")
        if name in _SECONDS and not _is_positive(given):
            raise ValueError(f"{name} is {given!r}; it is a number of seconds above 0")
        if name in _NAMES and given is not None and not (isinstance(given, str) and _NAME.fullmatch(given)):
            raise ValueError(
                f"{name} is {given!r}; it is a name of at most 200 letters, digits, dots, "
                "dashes and underscores"
            )
        if name == "on_window" and given is not None and not callable(given):
            raise TypeError(f"on_window is {given!r}, which can't be called; write a function of one table")


_CHOICES: dict[str, tuple[Any, ...]] = {
    "delivery": get_args(DeliveryName),
    "until": (None, "latest"),
    "start": ("earliest", "latest"),
}
_COUNTS = {"workers": 1, "table_partitions": 1, "keep_windows": 0}
_SECONDS = ("checkpoint_seconds", "idle_seconds")
_NAMES = ("group_id",)


def _is_positive(given: object) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool) and 0 < given < math.inf
