"""A fictional survey's night, for demos: alerts of variable stars, asteroids, artefacts, a few supernovae."""

from __future__ import annotations

import base64
import gzip
import json
import math
import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..app import Example, Message

_JD_OF_1970 = 2_440_587.5
_DAY_MS = 86_400_000
_HISTORY_MS = 8 * 3_600_000
_EVERY_MS = 2_000
_PIXELS = 63
_FIRST = ("ZTF26aaademo", 6_000)
"""A supernova whose first alert comes in six seconds."""


def messages(seed: int, now_ms: int) -> Iterator[Message]:
    """Generate alerts in Fink's JSON form, one every two seconds, starting eight hours ago.

    One in four hundred is a supernova that has been rising for some days.
    """
    dice = random.Random(seed)
    fields = [(dice.uniform(0, 360), math.degrees(math.asin(dice.uniform(-0.4, 0.95)))) for _ in range(40)]
    detected = False
    for number, at in enumerate(range(now_ms - _HISTORY_MS, 1 << 50, _EVERY_MS)):
        field = fields[(at - now_ms) // 600_000 % len(fields)]
        if not detected and at >= now_ms + _FIRST[1]:
            detected = True
            yield Message(_said(_supernova(dice, _FIRST[0], at, field)), _FIRST[0].encode(), at)
            continue
        kind = dice.choices((_star, _asteroid, _artefact, _supernova), (200, 100, 95, 1))[0]
        name = f"ZTF26{_letters(number if kind is not _star else dice.randrange(300))}"
        yield Message(_said(kind(dice, name, at, field)), name.encode(), at)


def _letters(number: int) -> str:
    letters = ""
    for _ in range(7):
        number, letter = divmod(number, 26)
        letters = chr(ord("a") + letter) + letters
    return letters


def _said(alert: dict[str, Any]) -> bytes:
    return json.dumps(alert).encode()


def _alert(dice: random.Random, name: str, at: int, field: tuple[float, float], mag: float) -> dict[str, Any]:
    """Return the fields of all alerts; there are no neighbours, and nothing is wrong with the image."""
    jd = _JD_OF_1970 + at / _DAY_MS
    candidate = {
        "jd": jd,
        "fid": dice.choice((1, 2)),
        "ra": (field[0] + dice.gauss(0, 2)) % 360,
        "dec": max(-90.0, min(90.0, field[1] + dice.gauss(0, 2))),
        "magpsf": round(mag, 3),
        "sigmapsf": round(0.03 + 0.1 * max(mag - 18, 0) / 2, 3),
        "diffmaglim": 20.5,
        "isdiffpos": "t",
        "rb": round(dice.uniform(0.6, 1), 3),
        "drb": round(dice.uniform(0.9, 1), 3),
        "nbad": 0,
        "fwhm": round(dice.uniform(1.8, 3), 2),
        "elong": round(dice.uniform(1, 1.15), 2),
        "magdiff": round(dice.gauss(0, 0.03), 3),
        "ndethist": dice.randrange(2, 12),
        "jdstarthist": jd - dice.uniform(2, 12),
        "magnr": 20.5,
        "distnr": 3.5,
        "ssdistnr": -999.0,
        "ssmagnr": -999.0,
        "neargaia": 25.0,
        "maggaia": 19.0,
        "neargaiabright": 80.0,
        "maggaiabright": 13.5,
        **{f"distpsnr{n}": 6.0 * n for n in (1, 2, 3)},
        **{f"sgscore{n}": 0.1 for n in (1, 2, 3)},
        **{f"s{band}mag{n}": 20.0 for band in "griz" for n in (1, 2, 3)},
    }
    return {"objectId": name, "candid": dice.randrange(1 << 62), "candidate": candidate, "prv_candidates": []}


def _star(dice: random.Random, name: str, at: int, field: tuple[float, float]) -> dict[str, Any]:
    alert = _alert(dice, name, at, field, dice.uniform(14, 19.5))
    alert["candidate"] |= {"distpsnr1": 0.2, "sgscore1": 0.98, "ndethist": 400, "distnr": 0.2, "magnr": 16.0}
    alert["candidate"]["jdstarthist"] -= 800
    alert["candidate"]["isdiffpos"] = dice.choice("tf")
    return alert


def _asteroid(dice: random.Random, name: str, at: int, field: tuple[float, float]) -> dict[str, Any]:
    alert = _alert(dice, name, at, field, dice.uniform(17, 20.3))
    alert["candidate"] |= {"ssdistnr": round(dice.uniform(0, 4), 2), "ssmagnr": 18.5, "ndethist": 1}
    return alert


def _artefact(dice: random.Random, name: str, at: int, field: tuple[float, float]) -> dict[str, Any]:
    alert = _alert(dice, name, at, field, dice.uniform(16, 20))
    alert["candidate"] |= {"rb": round(dice.uniform(0, 0.25), 3), "drb": round(dice.uniform(0, 0.6), 3)}
    return alert


def _supernova(dice: random.Random, name: str, at: int, field: tuple[float, float]) -> dict[str, Any]:
    alert = _alert(dice, name, at, field, dice.uniform(17.3, 18.8))
    own = alert["candidate"]
    earlier = []
    for ago in (0.9, 2, 3, 4, 5, 6, 8):
        mag = own["magpsf"] + 0.35 * ago
        seen = mag < 20.4
        earlier.append(
            {
                "jd": own["jd"] - ago,
                "fid": own["fid"],
                "magpsf": round(mag, 3) if seen else None,
                "sigmapsf": 0.1 if seen else None,
                "isdiffpos": "t" if seen else None,
                "diffmaglim": 20.5,
            }
        )
    host = _blob(dice, 3.0, 900.0)
    noise = np.random.default_rng(dice.randrange(1 << 32))
    light = _blob(dice, 1.3, 2500.0, centred=True)
    images = {"Science": host + light, "Template": host, "Difference": light}
    for kind, pixels in images.items():
        seen = pixels + noise.normal(100, 12, pixels.shape)
        alert[f"cutout{kind}"] = {"stampData": base64.b64encode(gzip.compress(_fits(seen), mtime=0)).decode()}
    return {**alert, "prv_candidates": earlier}


def _blob(dice: random.Random, width: float, light: float, centred: bool = False) -> np.ndarray:
    middle = (_PIXELS - 1) / 2
    x, y = (middle, middle) if centred else (middle + dice.gauss(0, 3), middle + dice.gauss(0, 3))
    rows, columns = np.mgrid[:_PIXELS, :_PIXELS]
    return light * np.exp(-((columns - x) ** 2 + (rows - y) ** 2) / (2 * width**2))


def _fits(pixels: np.ndarray) -> bytes:
    """Encode an image as a minimal FITS file."""
    cards = [("SIMPLE", "T"), ("BITPIX", "-32"), ("NAXIS", "2"), ("NAXIS1", _PIXELS), ("NAXIS2", _PIXELS)]
    head = "".join(f"{name:8}= {value:>20}".ljust(80) for name, value in cards) + "END".ljust(80)
    data = pixels.astype(">f4").tobytes()
    return head.ljust(2880).encode() + data.ljust(-(-len(data) // 2880) * 2880, b"\0")


EXAMPLE = Example("fink", messages, events=(("candidate", _FIRST[0]),))
