"""Known or watched places on the sky from a file, and the search for places near a position."""

from __future__ import annotations

import csv
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from .sky import degrees_apart

_ARCSECONDS = 3600


class SkyPlace(NamedTuple):
    """A name, a position in degrees (ICRS) if it has one, and a cone's radius in arcseconds."""

    name: str
    ra: float | None
    dec: float | None
    radius: float


@dataclass(frozen=True)
class Places:
    """The places in a CSV file with a header: `name`, `ra`, `dec`, and optionally a `radius` of their own.

    Positions are in degrees, or in hours and degrees as ``12:22:54.9 +15:49:25``. A line without a position
    stands for the object with that name. Lines that begin with ``#`` are skipped. The file is read when it is
    first needed.
    """

    path: str
    radius: float

    @cached_property
    def all(self) -> list[SkyPlace]:
        """All places. Raises `OSError` for a file that can't be read, `ValueError` naming a wrong line."""
        places = []
        with Path(self.path).open(newline="", encoding="utf-8-sig") as file:
            lines = csv.DictReader(line for line in file if not line.startswith("#"))
            named = [name.strip().lower() for name in lines.fieldnames or ()]
            if "name" not in named or ("ra" in named) != ("dec" in named):
                raise ValueError(
                    f"{self.path}: its columns are {', '.join(named) or 'none'}; name them name, ra and dec"
                )
            lines.fieldnames = named
            for number, line in enumerate(lines, 1):
                places.append(
                    self._place(number, {key: (value or "").strip() for key, value in line.items() if key})
                )
        return places

    def _place(self, number: int, line: dict[str, str]) -> SkyPlace:
        try:
            ra, dec = line.get("ra", ""), line.get("dec", "")
            place = SkyPlace(
                line["name"],
                degrees(ra, hours=True) if ra else None,
                degrees(dec) if dec else None,
                float(line.get("radius") or self.radius),
            )
            if (place.ra is None) != (place.dec is None):
                raise ValueError("it has one of ra and dec")
            if (
                place.ra is not None
                and place.dec is not None
                and not (0 <= place.ra <= 360 and -90 <= place.dec <= 90)
            ):
                raise ValueError(f"{place.ra:g} {place.dec:g} is not a position")
            if not 0 < place.radius <= 3600:
                raise ValueError(
                    f"the radius must be above 0 and at most 3600 arcseconds, got {place.radius:g}"
                )
        except ValueError as error:
            raise ValueError(
                f"{self.path}: line {number} after the header, {line.get('name')!r}: {error}"
            ) from None
        return place

    @cached_property
    def names(self) -> frozenset[str]:
        """All names."""
        return frozenset(place.name for place in self.all)

    def within(self, ra: float, dec: float) -> Iterator[tuple[SkyPlace, float]]:
        """Return the places whose cone contains a position, with the distance in arcseconds."""
        reach = self._widest / _ARCSECONDS
        for at in range(
            bisect_left(self._declinations, dec - reach), bisect_right(self._declinations, dec + reach)
        ):
            place = self._by_declination[at]
            assert place.ra is not None and place.dec is not None
            apart = degrees_apart(ra, dec, place.ra, place.dec) * _ARCSECONDS
            if apart <= place.radius:
                yield place, apart

    @cached_property
    def _by_declination(self) -> list[SkyPlace]:
        return sorted(
            (place for place in self.all if place.dec is not None), key=lambda place: place.dec or 0.0
        )

    @cached_property
    def _declinations(self) -> list[float]:
        return [place.dec or 0.0 for place in self._by_declination]

    @cached_property
    def _widest(self) -> float:
        return max((place.radius for place in self.all), default=0.0)


def degrees(written: str, hours: bool = False) -> float:
    """Parse an angle in degrees; with colons it is sexagesimal, and in `hours` for a right ascension.

    >>> degrees("185.7288", hours=True), round(degrees("12:22:54.9", hours=True), 4), degrees("-00:30:00")
    (185.7288, 185.7288, -0.5)

    Raises `ValueError` for anything else.
    """
    parts = written.split(":")
    if len(parts) == 1:
        return float(written)
    if len(parts) > 3:
        raise ValueError(f"{written!r} is not an angle; write 185.7288, or 12:22:54.9")
    sign = -1 if written.strip().startswith("-") else 1
    size = sum(abs(float(part)) / 60**at for at, part in enumerate(parts))
    return sign * size * (15 if hours else 1)
