"""Match alerts with extracts of catalogues by position."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from ....operators.definition.functions import WrongRows
from ....operators.definition.stream import Stream
from ...app import Settings, number
from ..cuts.cut import Cut, unless, wants
from .classes import CLASSES, HOSTS
from .extract import Extract, check_extract, extract
from .zones import Doubles

_WIDEST = 3600.0
_BATCH = 4096
"""The number of alerts that are matched at once, which limits the pairs in memory."""

MATCHED: dict[str, Any] = {
    "match": pl.String,
    "match_type": pl.String,
    "match_distance": pl.Float64,
    "match_in": pl.String,
    "matches": pl.String,
    "excluded": pl.String,
    "host": pl.String,
    "host_type": pl.String,
    "host_distance": pl.Float64,
    "host_z": pl.Float64,
}
"""The columns for alerts: the nearest object of all extracts within the radius, its distance and file; the
nearest of each extract, as text; the nearest excluded object, as text; and the nearest galaxy (including
active ones) within the host's radius. All are null without a match."""


@dataclass(frozen=True)
class Crossing:
    """Extracts, and how alerts are matched with them.

    Objects match within `radius` arcseconds. An alert is rejected if it matches an object whose class is
    in `exclude`, or whose type is, written as ``type:RRAB``. It is also rejected if a host galaxy is
    `required` and none lies within `host` arcseconds.
    """

    paths: tuple[str, ...]
    radius: float = 2.0
    exclude: tuple[str, ...] = ()
    host: float = 30.0
    required: bool = False

    @classmethod
    def of(cls, settings: Settings) -> Crossing:
        """Create it from settings. Raises `OSError` and `ValueError`, also for a file that isn't an
        extract."""
        paths = _listed(settings["catalog"])
        for path in paths:
            check_extract(path)
        exclude = _listed(settings["exclude"])
        for word in exclude:
            if word not in CLASSES and not word.startswith("type:"):
                raise ValueError(
                    f"--set exclude={word}: the classes are {', '.join(CLASSES)}; write a type "
                    "of the catalogue as type:RRAB"
                )
        for name in ("exclude", "host"):
            if settings[name] and not paths:
                raise ValueError(
                    f"--set {name}={settings[name]} goes by a catalogue; name one by --set catalog=FILE"
                )
        required = bool(settings["host"])
        host = number(settings, "host", 0) if required else cls.host
        radius = number(settings, "catalog_radius", 0)
        for name, value in (("catalog_radius", radius), ("host", host)):
            if value > _WIDEST:
                raise ValueError(f"--set {name} must be arcseconds, at most {_WIDEST:g}, got {value:g}")
        return cls(paths, radius, exclude, host, required)

    @property
    def cuts(self) -> tuple[Cut, ...]:
        """The cuts that follow a set's own."""
        exclude = Cut(
            "not catalogued",
            f"no {', '.join(self.exclude)} within {self.radius:g}″",
            unless(pl.col("excluded").is_not_null()),
        )
        host = Cut("host", f"a galaxy within {self.host:g}″", wants(pl.col("host_distance") <= self.host))
        return (*((exclude,) if self.exclude else ()), *((host,) if self.required else ()))

    def add(self, rows: Stream) -> Stream:
        """Add the columns `MATCHED` to rows with a position."""
        if not self.paths:
            return rows.with_columns(**{name: pl.lit(None, dtype) for name, dtype in MATCHED.items()})
        return rows.map_batches(partial(with_matches, crossing=self), {**dict(rows.columns), **MATCHED})


def _listed(setting: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.strip() for one in setting.split(",") if one.strip()))


def with_matches(rows: pl.DataFrame, crossing: Crossing) -> pl.DataFrame:
    """Add the columns `MATCHED` to rows, for `map_batches`.

    Raises `WrongRows`, which ends a run, if an extract can't be read, as that isn't an alert's fault.
    """
    try:
        extracts = [extract(path) for path in crossing.paths]
    except (OSError, ValueError) as error:
        raise WrongRows(f"map_batches: --set catalog: {error}") from None
    columns: dict[str, list[Any]] = {name: [] for name in MATCHED}
    for part in rows.select("ra", "dec").iter_slices(_BATCH):
        ra, dec = (part[name].cast(pl.Float64).fill_null(np.nan).to_numpy() for name in ("ra", "dec"))
        for values in _matched(ra, dec, extracts, crossing):
            for name in MATCHED:
                columns[name].append(values.get(name))
    return rows.with_columns(pl.Series(name, columns[name], dtype) for name, dtype in MATCHED.items())


@dataclass
class _Nearest:
    """The nearest objects of alerts so far, while extracts are searched one after the other."""

    match: tuple[float, Extract, int] | None = None
    excluded: tuple[float, Extract, int] | None = None
    host: tuple[float, Extract, int] | None = None
    texts: tuple[str, ...] = ()

    def values(self) -> Mapping[str, Any]:
        values: dict[str, Any] = {}
        if self.match is not None:
            apart, source, row = self.match
            entry = source.entry(row)
            values |= {"match": entry.name, "match_type": entry.type, "match_distance": apart}
            values |= {"match_in": source.label, "matches": ", ".join(self.texts)}
        if self.excluded is not None:
            values["excluded"] = _text(*self.excluded)
        if self.host is not None:
            apart, source, row = self.host
            entry = source.entry(row)
            values |= {"host": entry.name, "host_type": entry.type, "host_distance": apart, "host_z": entry.z}
        return values


def _matched(
    ra: Doubles, dec: Doubles, extracts: list[Extract], crossing: Crossing
) -> list[Mapping[str, Any]]:
    nearest: dict[int, _Nearest] = {}
    radius, host = crossing.radius, crossing.host
    classes = sum(CLASSES[word] for word in crossing.exclude if word in CLASSES)
    types = {word.removeprefix("type:").strip().lower() for word in crossing.exclude if word not in CLASSES}
    for source in extracts:
        cones, rows, apart = source.zones.within(ra, dec, max(radius, host))
        bits = source.classes(rows)
        seen = set()
        for at in np.flatnonzero((apart <= radius) | ((bits & HOSTS != 0) & (apart <= host))):
            cone, hit = int(cones[at]), (float(apart[at]), source, int(rows[at]))
            state = nearest.setdefault(cone, _Nearest())
            if apart[at] <= radius:
                if cone not in seen:
                    seen.add(cone)
                    state.match = _nearer(state.match, hit)
                    state.texts = (*state.texts, _text(*hit))
                if bits[at] & classes or (types and (source.type(hit[2]) or "").lower() in types):
                    state.excluded = _nearer(state.excluded, hit)
            if bits[at] & HOSTS and apart[at] <= host:
                state.host = _nearer(state.host, hit)
    nothing: Mapping[str, Any] = {}
    return [nearest[at].values() if at in nearest else nothing for at in range(len(ra))]


def _nearer(
    known: tuple[float, Extract, int] | None, other: tuple[float, Extract, int]
) -> tuple[float, Extract, int]:
    return other if known is None or other[0] < known[0] else known


def _text(apart: float, source: Extract, row: int) -> str:
    """Describe a match for reasons: its name, type and redshift, its distance, and the extract."""
    name, kind, z = source.entry(row)
    words = ", ".join([*([kind] if kind else []), *([f"z {z:.4g}"] if z is not None else [])])
    return f"{name}{f' ({words})' if words else ''} {apart:.2f}″ in {source.label}"
