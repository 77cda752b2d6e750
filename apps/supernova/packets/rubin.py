"""Rubin's packets: fluxes in nanojanskys, times in TAI.

Source: https://sdm-schemas.lsst.io/apdb.html and the `lsst-alert-packet` package. A night is from noon to
noon UTC, as in `day_obs`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ....operators.formats.per_message import Misread
from .packet import NEIGHBOURS, forced_flux, latest_first, needed, number, part, stamp, time_ms

_ZERO_POINT = 31.4
"""The AB magnitude of one nanojansky."""
_FLUXCAL = 10 ** ((_ZERO_POINT - 27.5) / 2.5)
"""Nanojanskys per unit of ELAsTiCC's fluxes (SNANA's FLUXCAL), whose zero point is 27.5."""
_OLDER = {
    "midPointTai": "midpointMjdTai",
    "filterName": "band",
    "decl": "dec",
    "psFlux": "psfFlux",
    "psFluxErr": "psfFluxErr",
}
"""Names in schemas before 6.0, as in ELAsTiCC and the previews, and today's names."""
_SIMULATED = ("simVersion", "z_final")
"""Fields that only ELAsTiCC's objects have."""
_POGSON = 2.5 / math.log(10)
_TAI_MS = 37_000
"""How far TAI has been ahead of UTC since 2017."""
_NOON_MS = 43_200_000
_SINCE, _UNTIL = 40_587, 160_000


def packet(record: Any) -> dict[str, Any]:
    """Return the stored part of a packet. Raises `Misread` if it isn't Rubin's."""
    source = part(record, "diaSource", "Rubin")
    if _OLDER.keys() & source.keys():
        record = _renamed(record)
        source = record["diaSource"]
    whole = record.get("diaObject")
    whole = whole if isinstance(whole, Mapping) else {}
    mjd = needed(source, "midpointMjdTai", _SINCE, _UNTIL)
    at, band = _at(mjd), source.get("band")
    past = latest_first(_point(one, mjd, band) for one in record.get("prvDiaSources") or ())
    first = number(whole.get("firstDiaSourceMjdTai"))
    if first is None:
        first = mjd - max((point["ago"] for point in past), default=0.0)
    known = number(whole.get(f"{band}_psfFluxNdata"))
    before = sum(point["same"] and point["mag"] is not None and point["ago"] > 0 for point in past)
    return {
        "object": _name(source),
        "alert": source.get("diaSourceId"),
        "at": at,
        "night": datetime.fromtimestamp((at - _NOON_MS) / 1000, UTC).date().isoformat(),
        "ra": needed(source, "ra", 0, 360),
        "dec": needed(source, "dec", -90, 90),
        "band": band,
        **_measured(source),
        "age": mjd - first,
        "detections": number(whole.get("nDiaSources")),
        "in_band": max(known or 0.0, before + 1.0),
        "moving": bool(source.get("ssObjectId")) or record.get("ssSource") is not None,
        **dict.fromkeys(NEIGHBOURS),
        "rb": number(source.get("reliability")),
        "past": past,
        "forced": latest_first(_forced(one, mjd, band) for one in record.get("prvDiaForcedSources") or ()),
        **{
            name: stamp(record.get(f"cutout{name.title()}")) for name in ("science", "template", "difference")
        },
    }


def _renamed(record: Mapping[str, Any]) -> dict[str, Any]:
    """Rename an older packet's fields to today's names, and convert ELAsTiCC's fluxes to nanojanskys."""
    whole = record.get("diaObject")
    is_simulated = isinstance(whole, Mapping) and any(name in whole for name in _SIMULATED)
    unit = _FLUXCAL if is_simulated else 1.0

    def source(older: Any) -> Any:
        if not isinstance(older, Mapping):
            return older
        today = {_OLDER.get(name, name): value for name, value in older.items()}
        fluxes = {
            name: flux * unit for name in ("psfFlux", "psfFluxErr") if (flux := number(today.get(name)))
        }
        band = today.get("band")
        return {**today, **fluxes, "band": band.lower() if isinstance(band, str) else band}

    lists = {
        name: [source(older) for older in record.get(name) or ()]
        for name in ("prvDiaSources", "prvDiaForcedSources")
    }
    return {**record, "diaSource": source(record["diaSource"]), **lists}


def _name(source: Mapping[str, Any]) -> str:
    """Return the id of the object or, if it is one, of the solar system object."""
    for field, before in (("diaObjectId", ""), ("ssObjectId", "SSO ")):
        if identifier := source.get(field):
            return f"{before}{identifier}"
    raise Misread("not an alert of Rubin's: it has neither diaObjectId nor ssObjectId")


def _measured(source: Mapping[str, Any]) -> dict[str, Any]:
    flux, error = (number(source.get(name)) for name in ("psfFlux", "psfFluxErr"))
    sure = error is not None and error > 0
    negative = source.get("isNegative")
    above = flux is not None and flux > 0
    return {
        "mag": _magnitude(flux) if above else None,  # type: ignore[arg-type]
        "error": _POGSON * error / flux if above and sure else None,  # type: ignore[operator]
        "limit": _magnitude(5 * error) if sure else None,  # type: ignore[operator]
        "positive": above if negative is None else above and not negative,
    }


def _point(source: Any, mjd: float, band: Any) -> dict[str, Any] | None:
    then = number(source.get("midpointMjdTai")) if isinstance(source, Mapping) else None
    if then is None or not _SINCE <= then <= _UNTIL:
        return None
    own = source.get("band")
    return {"at": _at(then), "ago": mjd - then, "band": own, "same": own == band, **_measured(source)}


def _forced(source: Any, mjd: float, band: Any) -> dict[str, Any] | None:
    """Return forced photometry; None without a flux and its error."""
    if not isinstance(source, Mapping):
        return None
    then, flux, error = (number(source.get(name)) for name in ("midpointMjdTai", "psfFlux", "psfFluxErr"))
    if then is None or not _SINCE <= then <= _UNTIL or flux is None or error is None or error <= 0:
        return None
    own = source.get("band")
    when = {"at": _at(then), "ago": mjd - then, "band": own, "same": own == band}
    return {**when, **forced_flux(flux, error, _ZERO_POINT)}


def _magnitude(nanojanskys: float) -> float:
    return _ZERO_POINT - 2.5 * math.log10(nanojanskys)


def _at(mjd: float) -> int:
    return time_ms(mjd) - _TAI_MS
