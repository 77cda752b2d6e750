"""Validation of constructor arguments for all families; errors name the family and the parameter."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from .arguments import exact_integer, plain, shown
from .lazy import np
from .protocol import SketchError


def whole(family: str, name: str, value: Any, least: int, most: int = 2**63 - 1) -> int:
    """Validate an integer from `least` to `most`, and return an int.

    Raises `SketchError` for anything else, including 8.0 and True.

    >>> whole("KLL", "k", np.int32(200), 8, 65535)
    200
    """
    number = exact_integer(value)
    if number is None or not least <= number <= most:
        rounded = isinstance(value, (float, np.floating)) and float(value).is_integer()
        hint = f"; write {int(value)}" if rounded and least <= value <= most else ""
        message = f"{name} must be a whole number {_range(least, most)}, got {shown(value)}{hint}"
        raise SketchError(f"{family}: {message}")
    return number


def _range(least: int, most: int) -> str:
    return f"from {least} on" if most == 2**63 - 1 else f"from {least} to {most}"


def seeded(family: str, seed: Any) -> int | None:
    """Validate a seed: any 64-bit integer, or None for a random one."""
    return None if seed is None else whole(family, "seed", seed, -(2**63), 2**64 - 1)


def real(family: str, name: str, value: Any, least: float, most: float, within: bool = False) -> float:
    """Validate a number from `least` to `most`, exclusive if `within`. Raises `SketchError` otherwise.

    >>> real("Bloom", "fpp", 0.01, 0, 1, within=True)
    0.01
    """
    given = plain(value)
    number = float(given) if isinstance(given, (float, np.floating)) else exact_integer(given)
    if number is None or not (least < number < most if within else least <= number <= most):
        between = f"between {least} and {most}" if within else f"from {least} to {most}"
        between = "" if -least == most == math.inf else f" {between}"
        raise SketchError(f"{family}: {name} must be a number{between}, got {shown(value)}")
    return float(number)


def seconds(family: str, name: str, span: Any) -> float:
    """Validate a duration, a timedelta or seconds, and round it to microseconds. Raises `SketchError`.

    >>> seconds("DecayedCount", "half_life", timedelta(minutes=1))
    60.0
    """
    given = plain(span)
    if isinstance(given, np.timedelta64) and np.datetime_data(given.dtype)[0] not in ("generic", "M", "Y"):
        given = float(given / np.timedelta64(1, "s"))
    elif isinstance(given, timedelta):
        given = given.total_seconds()
    try:
        number = real(family, name, given, 1e-6, 1e12)
    except SketchError:
        message = f"{name} must be a timedelta or seconds, from 1e-6 to 1e12, got {shown(span)}"
        raise SketchError(f"{family}: {message}") from None
    rounded = round(number * 1e6) / 1e6
    if abs(number - rounded) > 1e-3 * number:
        message = f"{name} must be whole microseconds, as times are, got {shown(span)}"
        raise SketchError(f"{family}: {message}; write {rounded!r}")
    return rounded


def deviations(family: str, std_devs: Any) -> int:
    """Validate the number of standard deviations for bounds: 1, 2 or 3. Raises `SketchError` otherwise.

    >>> deviations("HLL", np.int64(2))
    2
    """
    number = exact_integer(std_devs)
    if number not in (1, 2, 3):
        raise SketchError(f"{family}: std_devs must be 1, 2 or 3 standard deviations, got {shown(std_devs)}")
    return number


def described(value: Any) -> Any:
    """Convert a parameter for JSON: NumPy scalars to Python's own types, durations to seconds.

    >>> described(np.int32(7)), described(timedelta(minutes=1))
    (7, 60.0)
    """
    given = plain(value)
    return given.total_seconds() if isinstance(given, timedelta) else given


def flag(family: str, name: str, value: Any) -> bool:
    """Validate True or False. Raises `SketchError` for anything else, including 0 and 1."""
    given = plain(value)
    if not isinstance(given, bool):
        raise SketchError(f"{family}: {name} must be True or False, got {shown(value)}")
    return given


def one_of(family: str, name: str, value: Any, choices: Iterable[str]) -> Any:
    """Validate that a value is one of the words in `choices`. Raises `SketchError` otherwise."""
    if not isinstance(value, str) or value not in choices:
        raise SketchError(
            f"{family}: {name} must be one of {', '.join(map(repr, choices))}, got {shown(value)}"
        )
    return value
