"""The replay speed of a recording, from the command line."""

from __future__ import annotations

from typing import Annotated

import typer

Speed = Annotated[
    str, typer.Option(metavar="TIMES", help="1x is as recorded, 10x ten times faster, max at once.")
]


def faster(speed: str) -> float:
    """Parse a factor of the recorded speed; 0 for immediately. Raises `ValueError` for anything else.

    >>> faster("10x"), faster("0.5"), faster("max")
    (10.0, 0.5, 0.0)
    """
    if speed == "max":
        return 0.0
    try:
        factor = float(speed.removesuffix("x"))
    except ValueError:
        factor = -1.0
    if not 0 < factor < float("inf"):
        raise ValueError(f"--speed {speed}: write 1x, 10x or any other number of times, or max")
    return factor
