"""Answers as JSON has them: on the command line, over HTTP and in messages alike."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any


def jsonable(value: Any) -> Any:
    """A value as JSON has it: times in ISO 8601, bytes in hexadecimal, numbers that aren't finite as text.

    Those are "NaN", "Infinity" and "-Infinity", so that no number is taken for a missing one. Whole numbers
    have all their digits, and decimals that aren't whole are text.

    >>> from datetime import date
    >>> jsonable({"at": date(2026, 6, 1), "key": b"\\x01\\xff", "sums": [1.5, float("nan"), Decimal(2**64)]})
    {'at': '2026-06-01', 'key': '01ff', 'sums': [1.5, 'NaN', 18446744073709551616]}
    """
    if isinstance(value, dict):
        return {key: jsonable(part) for key, part in value.items()}
    if isinstance(value, list):
        return [jsonable(part) for part in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        return value if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, int | str | None):
        return value
    if isinstance(value, Decimal) and value == int(value):
        return int(value)
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
