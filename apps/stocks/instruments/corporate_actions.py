"""Splits from a file, for feeds that don't report them."""

from __future__ import annotations

import csv
import re
from datetime import date
from functools import lru_cache
from pathlib import Path

import polars as pl

from ...app import Settings
from ...recordings.compressed_files import as_text

_DAY = 86_400


def listed_split(settings: Settings) -> pl.Expr | None:
    """Return the split of a row's `symbol` on its session's date, from ``--set actions=FILE``; None without a
    file.

    For a daily bar (`span`), the session's date is the bar's; for other rows, it is the date in the market's
    time zone. Raises `ValueError` for a file that can't be read.
    """
    if not settings["actions"]:
        return None
    path = Path(settings["actions"])
    splits = _splits(path, path.stat().st_mtime_ns if path.is_file() else 0)
    at = pl.col("at")
    zoned = at.dt.convert_time_zone(settings["zone"]).dt.date()
    session = pl.when(pl.col("span") >= _DAY).then(at.dt.date()).otherwise(zoned)
    key = pl.concat_str("symbol", session.cast(pl.String), separator=" ")
    return key.replace_strict(list(splits), list(splits.values()), default=None, return_dtype=pl.Float64())


@lru_cache(maxsize=16)
def _splits(path: Path, changed_ns: int) -> dict[str, float]:
    try:
        with as_text(path) as file:
            rows = list(csv.DictReader(file, skipinitialspace=True))
    except OSError as error:
        raise ValueError(f"--set actions={path}: {error.strerror or error}") from None
    try:
        return {f"{row['symbol']} {date.fromisoformat(row['date'])}": _ratio(row["split"]) for row in rows}
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"--set actions={path} can't be read ({error}); write a CSV with the header symbol,date,split "
            "and lines such as AAPL,2020-08-31,4 or, for one new share for ten old ones, ACME,2026-06-01,1:10"
        ) from None


def _ratio(text: str) -> float:
    """Parse a ratio to the number of new shares per old share.

    >>> _ratio("4"), _ratio("3:2"), _ratio("1:10")
    (4.0, 1.5, 0.1)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(?:[:/]\s*(\d+(?:\.\d+)?))?\s*", text)
    if match is None or not float(match[1]) or not float(match[2] or 1):
        raise ValueError(f"{text!r} is not a ratio")
    return float(match[1]) / float(match[2] or 1)
