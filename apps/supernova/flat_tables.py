"""Convert tables with one row per detection, as brokers and archives export them, to packets.

Fink's tables have columns such as ``i:magpsf`` (ZTF) and ``r:psfFlux`` (Rubin), and its own as ``d:`` and
``f:``; ALeRCE's detections are named by `oid` and `mjd`; the DiaSource table of Rubin's data releases, such
as DP1, has the packets' own names. What was before a detection is what the table has of its object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

_JD_OF_MJD = 2_400_000.5
_EARLIER = 100
"""The maximum number of earlier detections per packet: as many as ZTF's packets have in 30 days."""
_MONTH, _YEAR = 30.0, 365.0
_ROWS = 1_000


class FlatTable(NamedTuple):
    """A kind of table: the `columns` that it is known by, those of the `time` (days) and the `object`, for
    how many days a packet has what was `before`, and the packet of a row and of rows before it."""

    survey: str
    columns: frozenset[str]
    time: str
    object: str
    before: float
    packet: Callable[[Mapping[str, Any], Sequence[Mapping[str, Any]]], dict[str, Any]]


def _without(prefix: str, row: Mapping[str, Any]) -> dict[str, Any]:
    return {name.removeprefix(prefix): value for name, value in row.items() if name.startswith(prefix)}


def _fink_ztf(row: Mapping[str, Any], before: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    candidate = _without("i:", row)
    return {
        **_without("d:", row),
        "objectId": candidate.get("objectId"),
        "candid": candidate.get("candid"),
        "candidate": candidate,
        "prv_candidates": [_without("i:", item) for item in before],
    }


def _fink_rubin(row: Mapping[str, Any], before: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    earlier = [_without("r:", item) for item in before]
    return {**_without("f:", row), "diaSource": _without("r:", row), "prvDiaSources": earlier}


def _alerce_detection(row: Mapping[str, Any]) -> dict[str, Any]:
    sign = row.get("isdiffpos")
    positive = sign if isinstance(sign, str) else None if sign is None else "t" if sign > 0 else "f"
    return {**row, "jd": row["mjd"] + _JD_OF_MJD, "isdiffpos": positive}


def _alerce(row: Mapping[str, Any], before: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    candidate = _alerce_detection(row)
    return {
        **row,
        "objectId": row["oid"],
        "candidate": candidate,
        "prv_candidates": [_alerce_detection(item) for item in before],
    }


def _rubin(row: Mapping[str, Any], before: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"diaSource": dict(row), "prvDiaSources": list(before)}


TABLES = (
    FlatTable("ztf", frozenset({"i:objectId", "i:jd", "i:magpsf"}), "i:jd", "i:objectId", _MONTH, _fink_ztf),
    FlatTable(
        "rubin",
        frozenset({"r:diaObjectId", "r:midpointMjdTai", "r:psfFlux"}),
        "r:midpointMjdTai",
        "r:diaObjectId",
        _YEAR,
        _fink_rubin,
    ),
    FlatTable("ztf", frozenset({"oid", "mjd", "fid", "magpsf", "isdiffpos"}), "mjd", "oid", _MONTH, _alerce),
    FlatTable(
        "rubin",
        frozenset({"diaObjectId", "midpointMjdTai", "psfFlux", "band"}),
        "midpointMjdTai",
        "diaObjectId",
        _YEAR,
        _rubin,
    ),
)


def flat_table_of(columns: Sequence[str]) -> FlatTable | None:
    """Return the kind of a table by its columns; None if unknown.

    >>> flat_table_of(["oid", "mjd", "fid", "magpsf", "sigmapsf", "isdiffpos"]).survey
    'ztf'
    """
    return next((kind for kind in TABLES if kind.columns <= set(columns)), None)


def packets_of(table: Any, kind: FlatTable) -> Iterator[dict[str, Any]]:
    """Return a packet for each row of an Arrow table, in the order of time."""
    times = table[kind.time].to_numpy(zero_copy_only=False).astype(float)
    order = np.argsort(times, kind="stable")
    seen: dict[Any, list[Mapping[str, Any]]] = {}
    batches = table.take(order).to_batches(max_chunksize=_ROWS)
    rows = (row for batch in batches for row in batch.to_pylist())
    for row, time in zip(rows, times[order].tolist()):
        earlier = seen.setdefault(row[kind.object], [])
        yield kind.packet(row, [item for item in earlier if time - item[kind.time] <= kind.before])
        earlier.append(row)
        del earlier[:-_EARLIER]
