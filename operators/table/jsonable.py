"""Answers as JSON has them: on the command line, over HTTP and in messages alike."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any


def jsonable(value: Any) -> Any:
    """A value as JSON has it: times in ISO 8601, bytes in hexadecimal, numbers that aren't finite as null.

    >>> from datetime import date
    >>> jsonable({"at": date(2026, 6, 1), "key": b"\\x01\\xff", "sums": [1.5, float("nan"), Decimal(2**64)]})
    {'at': '2026-06-01', 'key': '01ff', 'sums': [1.5, None, 18446744073709551616]}
    """
    if isinstance(value, dict):
        return {key: jsonable(part) for key, part in value.items()}
    if isinstance(value, list):
        return [jsonable(part) for part in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int | str | None):
        return value
    if isinstance(value, Decimal) and value == int(value):
        return int(value)
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
