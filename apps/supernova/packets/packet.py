"""The stored part of a survey's alert packet: a detection, earlier looks, neighbours, pictures.

Even within one packet, an unknown value may be null, NaN or -999; here it is always null. Only ZTF's packets
have neighbours (`NEIGHBOURS`); Rubin's have none.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from ....operators.formats.per_message import Misread

_FILLER = -999.0
_EPOCH_MJD = 40587
_DAY_MS = 86_400_000
_SIGNIFICANT, _LIMIT = 3, 5
"""In standard errors, from IPAC's guide to ZTF's forced photometry (Masci et al. 2023, section 10)."""
_TIME = pa.timestamp("ms", "UTC")

NEIGHBOURS = (
    *("rb", "drb", "fwhm", "elong", "magdiff", "nbad", "magnr", "distnr", "ssdistnr", "ssmagnr"),
    *(f"{name}{n}" for name in ("distpsnr", "sgscore", "srmag") for n in (1, 2, 3)),
    *("sgmag1", "simag1", "szmag1", "neargaia", "maggaia", "neargaiabright", "maggaiabright", "roid"),
)
"""Fields of ZTF's `candidate` that cuts use, under their own names, and Fink's `roid`."""

POINT = pa.struct(
    {
        "at": _TIME,
        "ago": pa.float64(),
        "band": pa.string(),
        "same": pa.bool_(),
        "mag": pa.float64(),
        "error": pa.float64(),
        "limit": pa.float64(),
        "positive": pa.bool_(),
    }
)
"""An earlier look at the object's position: `ago` days before the alert, in the `same` band or another."""

PACKET = pa.struct(
    {
        "object": pa.string(),
        "alert": pa.int64(),
        "at": _TIME,
        "night": pa.string(),
        "ra": pa.float64(),
        "dec": pa.float64(),
        "band": pa.string(),
        "mag": pa.float64(),
        "error": pa.float64(),
        "limit": pa.float64(),
        "positive": pa.bool_(),
        "age": pa.float64(),
        "detections": pa.float64(),
        "in_band": pa.float64(),
        "moving": pa.bool_(),
        **dict.fromkeys(NEIGHBOURS, pa.float64()),
        "scores": pa.list_(pa.float64()),
        "past": pa.list_(POINT),
        "forced": pa.list_(POINT),
        "science": pa.binary(),
        "template": pa.binary(),
        "difference": pa.binary(),
    }
)
"""A packet: `night` is the survey's name of it, `age` the days since the first detection, `in_band` the
number
of detections in this band; `scores` are those that a run names, `past` the earlier looks, latest first, and
`forced` the photometry at the object's position in exposures with and without a detection, which no cut
uses."""


def number(value: Any) -> float | None:
    """Return a number; None for any filler.

    >>> [number(value) for value in (19.5, None, -999.0, float("nan"), "null", 3)]
    [19.5, None, None, None, None, 3.0]
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    converted = float(value)
    return None if not math.isfinite(converted) or converted == _FILLER else converted


def needed(record: Mapping[str, Any], name: str, low: float, high: float) -> float:
    """Return a required number. Raises `Misread` if it is missing or out of range."""
    value = number(record.get(name))
    if value is None or not low <= value <= high:
        raise Misread(f"not an alert: its {name} is {record.get(name)!r}")
    return value


def part(record: Any, name: str, survey: str) -> Mapping[str, Any]:
    """Return a record within a packet. Raises `Misread` for a packet without it."""
    part_ = record.get(name) if isinstance(record, Mapping) else None
    if not isinstance(part_, Mapping):
        raise Misread(f"not an alert of {survey}'s: it has no {name}")
    return part_


def time_ms(mjd: float) -> int:
    """Convert a Modified Julian Date (UTC) to milliseconds since 1970.

    >>> time_ms(58859.5) == (58859 - 40587) * 86_400_000 + 43_200_000
    True
    """
    return round((mjd - _EPOCH_MJD) * _DAY_MS)


def latest_first(points: Iterable[dict[str, Any] | None]) -> list[dict[str, Any]]:
    """Sort earlier looks, latest first, without those that have no time."""
    return sorted((point for point in points if point is not None), key=lambda point: point["ago"])


def forced_flux(flux: float, error: float, zero_point: float) -> dict[str, Any]:
    """Return forced photometry of a flux: its magnitude, from 3 σ on, and the limit of 5 σ.

    >>> forced_flux(1000.0, 10.0, 26.0)["mag"], forced_flux(20.0, 10.0, 26.0)["mag"]
    (18.5, None)
    """
    seen = flux >= _SIGNIFICANT * error
    return {
        "mag": zero_point - 2.5 * math.log10(flux) if seen else None,
        "error": 2.5 / math.log(10) * error / flux if seen else None,
        "limit": zero_point - 2.5 * math.log10(_LIMIT * error),
        "positive": flux > 0,
    }


def stamp(cutout: Any) -> bytes | None:
    """Return a cutout's bytes, which are base64 within JSON."""
    data = cutout.get("stampData") if isinstance(cutout, Mapping) else cutout
    if isinstance(data, str):
        try:
            return base64.b64decode(data, validate=True)
        except ValueError:
            return None
    return data if isinstance(data, bytes) else None
