"""Recognise the columns of an extract from TNS, Gaia, SIMBAD, VizieR, or a user's own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

_RA = ("ra_d", "radeg", "ra", "ra_icrs", "_ra", "raj2000", "_raj2000", "ra_deg", "right_ascension")
_DEC = (
    *("dec_d", "dedeg", "decdeg", "dec", "de_icrs", "_de", "dej2000", "_dej2000", "dec_deg", "decl"),
    "declination",
)
_NAME = ("name", "main_id", "designation", "source_id", "object", "objname", "objectid", "id", "oid", "objid")
_TYPE = ("type", "otype", "main_type", "obj. type", "object_type", "objtype", "best_class_name", "class")
_Z = ("z", "redshift", "rvz_redshift", "z_value", "zspec")
_GAIA = ("phot_variable_flag", "in_qso_candidates", "in_galaxy_candidates", "parallax_over_error")
"""The columns of Gaia's table of sources about a source's kind."""
_SURE = 5
"""A parallax is significant from this many standard errors on."""


@dataclass(frozen=True)
class ExtractColumns:
    """The names of an extract's columns; missing optional ones are None."""

    ra: str
    dec: str
    name: str
    prefix: str | None = None
    type: str | None = None
    z: str | None = None
    gaia: Sequence[tuple[str, str]] = ()

    @classmethod
    def of(cls, names: Iterable[str]) -> ExtractColumns:
        """Find the columns among names, ignoring case.

        >>> ExtractColumns.of(["source_id", "ra", "dec"]).name
        'source_id'

        Raises `ValueError` where a position or a name is missing.
        """
        names = list(names)
        known = {name.strip().strip('"').lower(): name for name in reversed(names)}

        def first(aliases: Sequence[str]) -> str | None:
            return next((known[alias] for alias in aliases if alias in known), None)

        ra, dec, name = first(_RA), first(_DEC), first(_NAME)
        if ra is None or dec is None or name is None:
            raise ValueError(
                f"its columns are {', '.join(names[:20]) or 'none'}; it needs ra, dec and name, and may have "
                "type and z, or must be an export of TNS, Gaia, SIMBAD or VizieR"
            )
        gaia = [(flag, known[flag]) for flag in _GAIA if flag in known] if name.lower() == "source_id" else []
        return cls(ra, dec, name, known.get("name_prefix"), first(_TYPE), first(_Z), tuple(gaia))

    @property
    def of_gaia(self) -> bool:
        """Whether the names are Gaia source ids."""
        return self.name.lower() == "source_id"

    @property
    def names(self) -> list[str]:
        """All columns that are read."""
        optional = [self.prefix, self.type, self.z, *(name for _, name in self.gaia)]
        return list(dict.fromkeys([self.ra, self.dec, self.name, *(one for one in optional if one)]))

    def rows(self, batch: pl.DataFrame) -> pl.DataFrame:
        """Convert a batch to `name`, `type`, `ra`, `dec` and `z`; unreadable numbers are null.

        `position` is true if a row has any value for its position.
        """
        texts = batch.select(pl.col(self.names).cast(pl.String).str.strip_chars())
        return texts.select(
            name=self._name(),
            type=self._type().replace({"": None}),
            ra=_angle(self.ra, batch.schema[self.ra], hours=True),
            dec=_angle(self.dec, batch.schema[self.dec], hours=False),
            z=pl.lit(None, pl.Float32) if self.z is None else pl.col(self.z).cast(pl.Float32, strict=False),
            position=_filled(self.ra) | _filled(self.dec),
        )

    def _name(self) -> pl.Expr:
        name = pl.col(self.name).fill_null("")
        if self.prefix is not None:
            return pl.concat_str(pl.col(self.prefix).fill_null(""), name, separator=" ").str.strip_chars()
        return name

    def _type(self) -> pl.Expr:
        if self.type is not None:
            return pl.col(self.type)
        if not self.gaia:
            return pl.lit(None, pl.String)
        kinds = {
            "phot_variable_flag": (lambda flag: flag == "VARIABLE", "variable"),
            "in_qso_candidates": (_true, "QSO candidate"),
            "in_galaxy_candidates": (_true, "galaxy candidate"),
            "parallax_over_error": (lambda sigma: sigma.cast(pl.Float64, strict=False) > _SURE, "star"),
        }
        cases: list[Any] = []
        for flag, column in self.gaia:
            holds, kind = kinds[flag]
            cases.append(pl.when(holds(pl.col(column))).then(pl.lit(kind)))
        return pl.coalesce(*cases, pl.lit(None, pl.String))


def _true(flag: pl.Expr) -> pl.Expr:
    return flag.str.to_lowercase().is_in(["true", "t", "1"])


def _filled(name: str) -> pl.Expr:
    return (pl.col(name).fill_null("").str.to_lowercase().is_in(["", "nan", "null", "--"])).not_()


def _angle(name: str, dtype: Any, hours: bool) -> pl.Expr:
    """Parse degrees; with colons or blanks they are sexagesimal, and hours for a right ascension."""
    text = pl.col(name)
    plain = text.cast(pl.Float64, strict=False)
    if dtype.is_numeric():
        return plain
    parts = text.str.extract_groups(r"^([+-]?)(\d{1,3})[: ]+(\d{1,2})(?:[: ]+(\d{1,2}(?:\.\d*)?))?$")
    part = [parts.struct.field(str(at)).cast(pl.Float64, strict=False) for at in (2, 3, 4)]
    size = part[0] + part[1] / 60 + part[2].fill_null(0.0) / 3600
    sign = pl.when(parts.struct.field("1") == "-").then(-1.0).otherwise(1.0)
    sexagesimal = pl.when((part[1] < 60) & (part[2].fill_null(0.0) < 60)).then(sign * size)
    return pl.coalesce(plain, sexagesimal * (15 if hours else 1))
