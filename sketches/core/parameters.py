"""What a constructor is given, checked alike in every family: errors name the family and the parameter."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from .lazy import np
from .protocol import SketchError


def whole(family: str, name: str, value: Any, least: int, most: int = 2**63 - 1) -> int:
    """A whole number from `least` to `most`, as an int. Raises `SketchError` for all else, 8.0 and True too.

    >>> whole("KLL", "k", np.int32(200), 8, 65535)
    200
    """
    fine = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not fine or not least <= value <= most:
        hint = f"; write {int(value)}" if isinstance(value, float) and value.is_integer() else ""
        message = f"{name} must be a whole number {_range(least, most)}, got {value!r}{hint}"
        raise SketchError(f"{family}: {message}")
    return int(value)


def _range(least: int, most: int) -> str:
    return f"from {least} on" if most == 2**63 - 1 else f"from {least} to {most}"


def seeded(family: str, seed: Any) -> int | None:
    """A seed, any whole number of 64 bits, or None for one drawn at random."""
    return None if seed is None else whole(family, "seed", seed, -(2**63), 2**64 - 1)


def real(family: str, name: str, value: Any, least: float, most: float, within: bool = False) -> float:
    """A number from `least` to `most`, the two left out if `within`. Raises `SketchError` for all else.

    >>> real("Bloom", "fpp", 0.01, 0, 1, within=True)
    0.01
    """
    fine = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not fine or not (least < value < most if within else least <= value <= most):
        between = f"between {least} and {most}" if within else f"from {least} to {most}"
        raise SketchError(f"{family}: {name} must be a number {between}, got {value!r}")
    return float(value)


def seconds(family: str, name: str, span: Any) -> float:
    """A length of time, given as a timedelta or in seconds, to the whole microsecond. Raises `SketchError`.

    >>> seconds("DecayedCount", "half_life", timedelta(minutes=1))
    60.0
    """
    given = span.total_seconds() if isinstance(span, timedelta) else span
    try:
        number = real(family, name, given, 1e-6, 1e12)
    except SketchError:
        message = f"{name} must be a timedelta or seconds, from 1e-6 to 1e12, got {span!r}"
        raise SketchError(f"{family}: {message}") from None
    rounded = round(number * 1e6) / 1e6
    if abs(number - rounded) > 1e-3 * number:
        message = f"{name} must be whole microseconds, as times are, got {span!r}"
        raise SketchError(f"{family}: {message}; write {rounded!r}")
    return rounded


def flag(family: str, name: str, value: Any) -> bool:
    """True or False. Raises `SketchError` for 0, 1 and all else."""
    if not isinstance(value, (bool, np.bool_)):
        raise SketchError(f"{family}: {name} must be True or False, got {value!r}")
    return bool(value)


def one_of(family: str, name: str, value: Any, choices: Iterable[str]) -> Any:
    """One of the words. Raises `SketchError` for any other."""
    if not isinstance(value, str) or value not in choices:
        raise SketchError(f"{family}: {name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
    return value
