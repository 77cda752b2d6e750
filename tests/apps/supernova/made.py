"""Alert packets for tests, drawn at random with every kind of filler, and ZTF's as their containers."""

from __future__ import annotations

import json
import random
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import polars as pl

JD = 2_460_920.75
FILLERS = (None, -999.0, float("nan"))


def packet(dice: random.Random, name: str = "ZTF26aaaaaaa", jd: float = JD) -> dict[str, Any]:
    """A packet near every limit that the cuts have, some of its values missing."""
    near = dice.choice([1, 1, 1, 0.02, 400])
    candidate: dict[str, Any] = {
        "jd": jd,
        "fid": dice.choice([1, 2, 3]),
        "ra": dice.uniform(0, 360),
        "dec": dice.uniform(-30, 90),
        "magpsf": dice.choice([dice.uniform(15, 21), 19.8, 18.5]),
        "sigmapsf": dice.uniform(0.02, 0.2),
        "diffmaglim": dice.uniform(19, 21),
        "isdiffpos": dice.choice(["t", "t", "1", "1", "f", "0"]),
        "rb": dice.choice([dice.uniform(0.1, 1), 0.2, 0.9]),
        "drb": dice.choice([dice.uniform(0.7, 1), 0.8, 0.99]),
        "nbad": dice.choice([0, 0, 0, 1]),
        "fwhm": dice.uniform(1, 6),
        "elong": dice.uniform(1, 1.4),
        "magdiff": dice.uniform(-0.2, 0.2),
        "ndethist": dice.choice([2, 31, 150, 201]),
        "jdstarthist": jd - dice.choice([0.0, 4.0, 31.0, 91.0, 301.0, 361.0]),
        "magnr": dice.uniform(14, 21),
        "distnr": dice.uniform(0, 2) * near,
        "ssdistnr": dice.choice([-999.0, -999.0, -999.0, dice.uniform(0, 20)]),
        "ssmagnr": dice.uniform(15, 22),
        "neargaia": dice.uniform(0, 2) * near,
        "maggaia": dice.uniform(13, 20),
        "neargaiabright": dice.uniform(0, 60),
        "maggaiabright": dice.uniform(9, 14),
    }
    for n in (1, 2, 3):
        candidate[f"distpsnr{n}"] = dice.uniform(0, 4) * near * n
        candidate[f"sgscore{n}"] = dice.choice([dice.random(), 0.5, 0.95])
        for band in "griz":
            candidate[f"s{band}mag{n}"] = dice.choice([dice.uniform(12, 22), 0.0, 35.0])
    kept = ("jd", "ra", "dec", "isdiffpos", "magpsf")
    for field in candidate:
        if field not in kept and dice.random() < 0.07:
            candidate[field] = dice.choice(FILLERS)
    return {
        "objectId": name,
        "candid": dice.randrange(1 << 62),
        "candidate": candidate,
        "prv_candidates": [_earlier(dice, jd) for _ in range(dice.choice([0, 1, 3, 8]))] or None,
        "roid": dice.choice([0, 0, 0, 0, 3, None]),
    }


def _earlier(dice: random.Random, jd: float) -> dict[str, Any]:
    seen = dice.random() < 0.7
    return {
        "jd": jd - dice.choice([0.01, 0.4, 0.8, 3.0, dice.uniform(0, 40)]),
        "fid": dice.choice([1, 2]),
        "magpsf": dice.uniform(17, 20.5) if seen else dice.choice(FILLERS),
        "sigmapsf": 0.1 if seen else None,
        "isdiffpos": dice.choice(["t", "1", "f"]) if seen else None,
        "diffmaglim": dice.uniform(19, 21),
    }


def container(*packets: dict[str, Any], space: str = "ztf") -> bytes:
    """Packets in an Avro container, with a schema of the form that ZTF's have."""
    candidate = {name for one in packets for name in one["candidate"]}
    fields = [{"name": name, "type": ["null", "double", "string"]} for name in sorted(candidate)]
    earlier = [
        {"name": name, "type": ["null", "double", "string"]}
        for name in ("jd", "fid", "magpsf", "sigmapsf", "isdiffpos", "diffmaglim")
    ]
    past = {"type": "record", "name": "prv_candidate", "fields": earlier}
    schema: dict[str, Any] = {
        "type": "record",
        "name": "alert",
        "namespace": space,
        "fields": [
            {"name": "objectId", "type": "string"},
            {"name": "candid", "type": "long"},
            {"name": "candidate", "type": {"type": "record", "name": "candidate", "fields": fields}},
            {"name": "prv_candidates", "type": ["null", {"type": "array", "items": past}]},
            {"name": "roid", "type": ["null", "int"]},
        ],
    }
    file = BytesIO()
    fastavro.writer(file, fastavro.parse_schema(schema), packets)
    return file.getvalue()


def as_json(packet: dict[str, Any]) -> bytes:
    """A packet as JSON, with the NaN that Python writes."""
    return json.dumps(packet).encode()


def fink_rows(recordings: Path) -> list[dict[str, Any]]:
    """The recorded alerts that Fink enriched, as they stand in their file."""
    return pl.read_parquet(recordings / "astronomy" / "ztf_few_slsn_alerts.parquet").to_dicts()


def passing(name: str, jd: float, mag: float, fid: int = 1) -> dict[str, Any]:
    """A packet that no cut of the Bright Transient Survey fells."""
    nothing = {"distpsnr1": -999.0, "sgscore1": -999.0, "neargaia": None, "ssdistnr": -999.0, "magnr": None}
    seen = {"magpsf": mag, "sigmapsf": 0.05, "diffmaglim": 20.5, "isdiffpos": "t"}
    place = {"ra": 150.0, "dec": 20.0}
    scores = {"rb": 0.9, "drb": 0.99, "ndethist": 4, "jdstarthist": jd - 4}
    earlier = {
        "jd": jd - 3,
        "fid": 3 - fid,
        "magpsf": 18.5,
        "sigmapsf": 0.05,
        "isdiffpos": "t",
        "diffmaglim": 20.4,
    }
    limit = {
        "jd": jd - 6,
        "fid": fid,
        "magpsf": None,
        "sigmapsf": None,
        "isdiffpos": None,
        "diffmaglim": 20.6,
    }
    return {
        "objectId": name,
        "candid": 1,
        "candidate": {"jd": jd, "fid": fid, **place, **seen, **scores, **nothing},
        "prv_candidates": [earlier, limit],
        "roid": 0,
    }


def rubin(dice: random.Random, name: int) -> dict[str, Any]:
    """A packet of Rubin's near the limits of what is new and rising."""
    mjd = 61_000.1 + name / 100

    def source(then: float, band: str) -> dict[str, Any]:
        flux = dice.choice([dice.uniform(600, 9000), dice.uniform(-900, 900), float("nan"), None])
        return {
            "diaSourceId": dice.randrange(1 << 60),
            "diaObjectId": name,
            "ssObjectId": dice.choice([0, 0, 0, None, 5]),
            "midpointMjdTai": then,
            "ra": dice.uniform(0, 360),
            "dec": dice.uniform(-90, 30),
            "band": band,
            "psfFlux": flux,
            "psfFluxErr": 90.0,
            "isNegative": flux is not None and flux < 0,
        }

    past = [
        source(mjd - dice.choice([0.01, 0.5, 1, 3, 6]), dice.choice("gr"))
        for _ in range(dice.choice([0, 1, 2, 4]))
    ]
    result: dict[str, Any] = {"diaSource": source(mjd, dice.choice("gr")), "prvDiaSources": past or None}
    if dice.random() < 0.5:
        known = dice.choice([None, float("nan"), mjd - 2, mjd - 9])
        result["diaObject"] = {"firstDiaSourceMjdTai": known, "r_psfFluxNdata": dice.choice([None, 1, 2])}
    return result
