"""The class of an object by its type in a catalogue: star, variable star, active nucleus, galaxy, supernova.

Types are those of SIMBAD (https://simbad.cds.unistra.fr/guide/otypes.htx), of the Transient Name Server, of
Gaia's classifiers (Rimoldini et al. 2023, A&A 674, A14) and of the International Variable Star Index.
"""

from __future__ import annotations

import re

CLASSES = {"star": 1, "variable": 2, "agn": 4, "galaxy": 8, "supernova": 16}
"""The classes that cuts name, one bit each. A variable star is a star, too."""

HOSTS = CLASSES["galaxy"] | CLASSES["agn"]
"""The classes of a supernova's possible hosts: active nuclei are in galaxies."""

_VARIABLE = CLASSES["star"] | CLASSES["variable"]
_SIMBAD = {
    "variable": (
        *(
            "V",
            "Ir",
            "Er",
            "Ro",
            "RC",
            "Pu",
            "RR",
            "Ce",
            "cC",
            "dS",
            "WV",
            "bC",
            "gD",
            "SX",
            "a2",
            "BY",
            "RS",
        ),
        *("El", "EB", "Al", "bL", "WU", "EP", "Mi", "LP", "Sy", "CV", "No", "XB", "LX", "HX", "TT", "Or"),
        *("FU", "RV", "Be", "Ae", "Fl", "Pec", "DQ", "AM", "NL", "DN", "s*"),
    ),
    "agn": ("AGN", "AG", "QSO", "Q", "SyG", "Sy1", "Sy2", "Bla", "BLL", "Bz", "LIN", "LI", "rG", "OVV"),
    "galaxy": (
        *("G", "GiG", "GiC", "GiP", "GiN", "BiC", "BCG", "bCG", "IG", "PaG", "LSB", "SBG", "EmG", "H2G"),
        *("LeG", "GG", "G*", "ERO", "HzG", "BH"),
    ),
    "supernova": ("SN",),
}
_OTHERS = {
    "variable": (
        *(
            "acv",
            "acyg",
            "bcep",
            "be",
            "cep",
            "cw",
            "dcep",
            "dsct",
            "gdor",
            "sxphe",
            "e",
            "ea",
            "eb",
            "ew",
            "ec",
        ),
        *("ecl", "ell", "lpv", "l", "lb", "lc", "m", "mira", "sr", "sra", "srb", "rcb", "rr", "rrab", "rrc"),
        *("rrd", "rs", "rot", "by", "spb", "sdb", "solar_like", "syst", "yso", "cv", "ug", "ugsu", "ugss"),
        *(
            "ugz",
            "ugwz",
            "nl",
            "na",
            "nb",
            "nr",
            "n",
            "am",
            "vy",
            "zand",
            "gcas",
            "sdor",
            "var",
            "hads",
            "uv",
        ),
        *("lbv", "varstar", "microlensing", "wr", "mcp", "roam", "roap", "sxari", "s"),
    ),
    "star": ("wd", "star"),
    "agn": ("agn", "qso", "quasar", "blazar", "bllac"),
    "galaxy": ("galaxy", "gal", "g"),
    "supernova": ("sn", "slsn", "supernova"),
}
_WORDS = (
    ("agn", r"seyfert|quasar|\bqso|\bagn\b|blazar|bl lac|active gal|\bliner\b"),
    ("supernova", r"supernova|^(candidate |possible )?(sn|slsn)\b"),
    ("galaxy", r"galaxy|galaxies\b"),
    ("variable", r"variable|varstar|lyr|cepheid|\bmira\b|eclipsing|\bnova\b|cataclysmic|pulsating|rotating"),
    ("star", r"\bstar\b|dwarf|^gaia source with parallax"),
)
_BITS = {**CLASSES, "variable": _VARIABLE}
_BY_SIMBAD = {code: _BITS[name] for name, codes in _SIMBAD.items() for code in codes}
_BY_OTHERS = {code: _BITS[name] for name, codes in _OTHERS.items() for code in codes}


def classes_of(type_: str | None) -> int:
    """Return the classes of a type, as bits of `CLASSES`; 0 if it has none of them.

    >>> names = ["RR*", "SyG", "SN Ia", "Galaxy", "*", "DSCT|GDOR|SXPHE", "Radio", None]
    >>> [classes_of(name) for name in names]
    [3, 4, 16, 8, 1, 3, 0, 0]
    """
    type_ = (type_ or "").strip()
    if not type_:
        return 0
    code = type_.rstrip("?:")
    for known in (_BY_SIMBAD.get(code), _BY_SIMBAD.get(code.rstrip("*"))):
        if known is not None:
            return known
    words = type_.lower()
    for part in re.split(r"[|/+]", words):
        if (bits := _BY_OTHERS.get(part.strip().rstrip("?:"))) is not None:
            return bits
    for name, pattern in _WORDS:
        if re.search(pattern, words):
            return _BITS[name]
    return CLASSES["star"] if code.endswith("*") else 0
