"""ZTF's packets, schemas 3.3, 4.01 and similar ones, also enriched by Fink.

Source: https://zwickytransientfacility.github.io/ztf-avro-alert/schema.html. Fields are read by name, and
others are ignored, so new schemas need no change here.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ....operators.formats.per_message import Misread
from .packet import NEIGHBOURS, forced_flux, latest_first, needed, number, part, stamp, time_ms

_BANDS = {1: "g", 2: "r", 3: "i"}
_SIGNS = {"t": True, "1": True, "true": True, "f": False, "0": False, "false": False}
_JD_OF_MJD = 2_400_000.5
_SINCE, _UNTIL = 2_440_588, 2_560_000
"""From 1970 to 2296: other Julian dates are invalid."""


_FAILED = -99_999.0
"""Stands for a flux that forced photometry could not measure."""
_SURVEYS = {"pgir": "Palomar Gattini-IR (PGIR)", "winter": "WINTER (WNTR)", "wirc": "WIRC", "turbo": "TURBO"}
"""Other surveys with packets in ZTF's form, by the namespaces of their schemas."""
_NAMES = {"PGIR": "pgir", "WNTR": "winter", "WIRC": "wirc"}
"""The prefixes of their objects' names."""
_PUBLISHERS = {"pgirdps": "pgir", "winter-mirar": "winter", "turbo": "turbo"}
"""The prefixes of their pipelines' names; TURBO's objects have no prefix.

Source of all three: the schemas and the recorded alerts in https://github.com/skyportal/kowalski, as of 2025.
"""
_SHOWN = 60


def survey_of_schema(name: str) -> str | None:
    """Return the other survey that a schema in ZTF's form belongs to, by its full name; None for ZTF's own
    and
    brokers'.

    >>> survey_of_schema("winter.alert"), survey_of_schema("ztf.alert")
    ('WINTER (WNTR)', None)
    """
    return _SURVEYS.get(name.lower().partition(".")[0])


def of_another(survey: str, about: str = "") -> str:
    """Explain that an alert is from another survey than ZTF."""
    return f"an alert of {survey}, not of ZTF{about}; the cuts are ZTF's"


def _survey_of(name: str, publisher: Any) -> str:
    """Return the survey of an object by its name or the packet's publisher, if known."""
    by = str(publisher or "")
    begins = ((name.upper(), _NAMES), (by.lower(), _PUBLISHERS))
    known = (space for text, spaces in begins for begin, space in spaces.items() if text.startswith(begin))
    if (space := next(known, None)) is not None:
        return _SURVEYS[space]
    return repr(by[:_SHOWN]) if by else "another survey"


def packet(record: Any) -> dict[str, Any]:
    """Return the stored part of a packet. Raises `Misread` if it isn't ZTF's."""
    candidate = part(record, "candidate", "ZTF")
    name = record.get("objectId", record.get("objectid"))
    if name is None or name == "":
        raise Misread("not an alert of ZTF's: it has no objectId")
    if not str(name).startswith("ZTF"):
        survey = _survey_of(str(name), record.get("publisher"))
        raise Misread(of_another(survey, f": its object is {str(name)[:_SHOWN]!r}"))
    jd = needed(candidate, "jd", _SINCE, _UNTIL)
    at, band = time_ms(jd - _JD_OF_MJD), _band(candidate)
    first = number(candidate.get("jdstarthist"))
    past = latest_first(_point(one, jd, band) for one in record.get("prv_candidates") or ())
    before = [p for p in past if p["same"] and p["positive"] and p["mag"] is not None and p["ago"] > 0]
    return {
        "object": str(name),
        "alert": _whole(record.get("candid", candidate.get("candid"))),
        "at": at,
        "night": datetime.fromtimestamp(at / 1000, UTC).date().isoformat(),
        "ra": needed(candidate, "ra", 0, 360),
        "dec": needed(candidate, "dec", -90, 90),
        "band": band,
        **_measured(candidate),
        "age": None if first is None else jd - first,
        "detections": number(candidate.get("ndethist")),
        "in_band": float(len(before) + 1),
        "moving": None,
        **{name: number(candidate.get(name)) for name in NEIGHBOURS},
        "roid": number(record.get("roid")),
        "past": past,
        "forced": latest_first(_forced(one, jd, band) for one in record.get("fp_hists") or ()),
        **{
            name: stamp(record.get(f"cutout{name.title()}")) for name in ("science", "template", "difference")
        },
    }


def _measured(record: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "mag": number(record.get("magpsf")),
        "error": number(record.get("sigmapsf")),
        "limit": number(record.get("diffmaglim")),
        "positive": _SIGNS.get(str(record.get("isdiffpos")).lower()),
    }


def _point(record: Any, jd: float, band: str | None) -> dict[str, Any] | None:
    then = number(record.get("jd")) if isinstance(record, Mapping) else None
    if then is None or not _SINCE <= then <= _UNTIL:
        return None
    own = _band(record)
    at = time_ms(then - _JD_OF_MJD)
    return {"at": at, "ago": jd - then, "band": own, "same": own == band, **_measured(record)}


def _forced(record: Any, jd: float, band: str | None) -> dict[str, Any] | None:
    """Return forced photometry; None if it failed, or without a flux and its calibration."""
    if not isinstance(record, Mapping):
        return None
    then, flux, error, zero_point = (
        number(record.get(name)) for name in ("jd", "forcediffimflux", "forcediffimfluxunc", "magzpsci")
    )
    if then is None or not _SINCE <= then <= _UNTIL or flux is None or zero_point is None:
        return None
    if error is None or error <= 0 or flux == _FAILED:
        return None
    own = _band(record)
    when = {"at": time_ms(then - _JD_OF_MJD), "ago": jd - then, "band": own, "same": own == band}
    return {**when, **forced_flux(flux, error, zero_point)}


def _band(record: Mapping[str, Any]) -> str | None:
    fid = number(record.get("fid"))
    return None if fid is None else _BANDS.get(int(fid), f"fid {fid:g}")


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63 else None
