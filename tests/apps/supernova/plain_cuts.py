"""The cuts once more, in plain Python over one packet as it came: slow, and written from the papers alone."""

from __future__ import annotations

import math
from typing import Any


def known(value: Any) -> float | None:
    """None for every filler."""
    if not isinstance(value, int | float) or math.isnan(value) or value == -999:
        return None
    return float(value)


class Alert:
    """A packet's values by name; `c.name` is None where it isn't known."""

    def __init__(self, packet: dict[str, Any]) -> None:
        self._candidate = packet["candidate"]
        self.roid = packet.get("roid")
        self.sign = self._candidate["isdiffpos"] in ("t", "1")
        self.past = packet["prv_candidates"] or []
        self.age = None if self.jdstarthist is None else self.jd - self.jdstarthist

    def __getattr__(self, name: str) -> float | None:
        return known(self._candidate.get(name))

    def star(self, band: str, n: int = 1) -> float | None:
        mag = getattr(self, f"s{band}mag{n}")
        return mag if mag is not None and mag > 0 else None


def less(value: float | None, limit: float) -> bool:
    return value is not None and value < limit


def more(value: float | None, limit: float) -> bool:
    return value is not None and value > limit


def detections(a: Alert) -> list[tuple[float, int, float]]:
    """The positive ones before: days ago, filter, magnitude."""
    collected = []
    for one in a.past:
        if one["isdiffpos"] in ("t", "1") and known(one["magpsf"]) is not None:
            collected.append((a.jd - one["jd"], one["fid"], known(one["magpsf"])))
    return collected


def purity(a: Alert) -> str:
    if a.rb is None or a.rb < 0.65:
        return "real"
    if a.nbad != 0:
        return "clean"
    if a.fwhm is None or a.fwhm > 5:
        return "sharp"
    if a.elong is None or a.elong > 1.2:
        return "round"
    return "passed" if a.magdiff is not None and abs(a.magdiff) <= 0.1 else "point"


def quality(a: Alert) -> str:
    if a.rb is None or a.rb < 0.55:
        return "real"
    return "passed" if a.nbad == 0 else "clean"


def rising(a: Alert) -> str:
    if not a.sign:
        return "positive"
    if not less(a.age, 5):
        return "new"
    if not a.magpsf < 24:
        return "bright"
    same = sorted((ago, mag) for ago, fid, mag in detections(a) if fid == a.fid)
    if not any(ago > 0 for ago, _ in same):
        return "twice"
    apart = [(ago, mag) for ago, mag in same if ago > 0.02]
    changes = apart and fast((a.magpsf - apart[0][1]) / apart[0][0], a.age, {1: "g", 2: "r", 3: "i"}[a.fid])
    return "passed" if changes else "rate"


def fast(rate: float, age: float, band: str) -> bool:
    """Whether an object of that age changes fast enough in a band, by fink-filters 7.40."""
    if rate < -0.2 and age < 3:
        return True
    return rate > {"r": 0.2, "i": 0.2, "g": 0.5, "u": 0.5}.get(band, math.inf)


def bts(a: Alert) -> str:
    mag = a.magpsf
    if not a.sign:
        return "positive"
    if not mag < 19.8:
        return "bright"
    for one in a.past:
        if abs(a.jd - one["jd"]) < 0.75 and known(one["magpsf"]) is not None and one["magpsf"] >= 19:
            return "lasting"
    if artefact(a):
        return "real"
    if star_underneath(a):
        return "no star underneath"
    if bright_neighbour(a):
        return "no bright neighbour"
    if variable(a):
        return "not variable"
    if not any(abs(ago) > 0.02 for ago, _, _ in detections(a)):
        return "stationary"
    rock = a.ssdistnr is not None and 0 <= a.ssdistnr < 12 and less(a.ssmagnr, 20)
    return "no asteroid" if rock or a.roid not in (0, None) else "passed"


def artefact(a: Alert) -> bool:
    if a.rb is None or a.drb is None or a.rb <= 0.2 or a.drb < 0.8:
        return True
    for rb, far, g, (r, i, z) in ((0.35, 1, 17, (17, 17, 16.5)), (0.45, 1.5, 15.5, (15.5, 15.5, 15))):
        if a.rb < rb and less(a.neargaia, far) and less(a.maggaia, g):
            return True
        stars = less(a.star("r"), r) or less(a.star("i"), i) or less(a.star("z"), z)
        if a.rb < rb and less(a.distpsnr1, far) and more(a.sgscore1, 0.49) and stars:
            return True
    ps1 = next((m for m in (a.star(b) for b in "rig") if m is not None and m < 30), None)
    limits = ((0.9, 3, 16), (0.9, 1.1, 18), (0.95, 1.5, 15.5), (0.95, 0.8, 17.5))
    return more(a.age, 90) and any(
        a.drb < drb and less(a.distpsnr1, far) and less(ps1, faint) for drb, far, faint in limits
    )


def star_underneath(a: Alert) -> bool:
    if more(a.sgscore1, 0.76) and less(a.distpsnr1, 2.5):
        return True
    red = a.star("r")
    colours = [red - a.star(b) for b in "zi" if red is not None and a.star(b) is not None]
    return more(a.sgscore1, 0.2) and less(a.distpsnr1, 1) and any(colour > 3 for colour in colours)


def bright_neighbour(a: Alert) -> bool:
    if less(a.neargaiabright, 20) and less(a.maggaiabright, 12):
        return True
    for band, n, far in (("r", 1, 20), ("r", 2, 20), ("r", 3, 20), ("i", 1, 20), ("z", 1, 10)):
        near = less(getattr(a, f"distpsnr{n}"), far) and more(getattr(a, f"sgscore{n}"), 0.9)
        if near and less(a.star(band, n), 14):
            return True
    return False


def variable(a: Alert) -> bool:
    mag, old = a.magpsf, more(a.age, 90)
    same = [known(p["magpsf"]) for p in a.past if p["fid"] == a.fid and known(p["magpsf"]) is not None]
    at_peak = all(mag <= before for before in same)
    if more(a.ndethist, 200):
        return True
    bright_before = sum(0.75 < ago < 30 and before < 19.8 for ago, _, before in detections(a))
    reference = more(a.magnr, 0)
    on_it = any(
        less(a.distnr, far) and less(a.magnr, faint) for far, faint in ((0.4, 19.5), (0.8, 17.5), (1.2, 15.5))
    )
    often = bright_before >= (1 if more(a.age, 360) else 2)
    if old and more(a.ndethist, 30) and often and reference and not (at_peak and mag < 18.5) and on_it:
        return True
    if more(a.maggaia, 0) and a.neargaia is not None and a.age is not None:
        near = a.neargaia
        if near < 0.35 and (
            (a.maggaia < 17 and a.age > 30) or (a.maggaia < 19 and a.age > 300 and mag > 18.5)
        ):
            return True
        if near < 0.2 and a.maggaia < 18 and old:
            return True
    stars = [m for m in (a.star(b) for b in "rigz") if m is not None]
    brightest = min(stars, default=None)
    if old and more(a.sgscore1, 0.25) and less(a.distpsnr1, 3) and less(brightest, 16):
        return True
    if old and a.sgscore1 == 0.5 and less(a.distpsnr1, 0.5) and less(brightest, 17):
        return True
    return old and reference and a.magnr < mag - 1 and less(a.distnr, 0.5) and not at_peak


SETS = {"purity": purity, "quality": quality, "bts": bts, "rising": rising}


def magnitude(source: dict[str, Any]) -> float | None:
    """The AB magnitude of a flux in nanojanskys, of positive sources."""
    flux = known(source["psfFlux"])
    return None if flux is None or flux <= 0 else 31.4 - 2.5 * math.log10(flux)


def rubin_rising(packet: dict[str, Any]) -> str:
    """Rubin's new and rising."""
    now, past, whole = packet["diaSource"], packet["prvDiaSources"] or [], packet.get("diaObject") or {}
    mag, time = magnitude(now), now["midpointMjdTai"]
    if mag is None:
        return "positive"
    first = known(whole.get("firstDiaSourceMjdTai"))
    if first is None:
        first = min([time, *(one["midpointMjdTai"] for one in past)])
    if not time - first < 5:
        return "new"
    if not mag < 24:
        return "bright"
    same = [one for one in past if one["band"] == now["band"] and magnitude(one) is not None]
    counted = known(whole.get(f"{now['band']}_psfFluxNdata")) or 0
    if max(counted, 1 + len(same)) < 2:
        return "twice"
    apart = sorted((time - one["midpointMjdTai"], magnitude(one)) for one in same)
    apart = [(days, before) for days, before in apart if days > 0.02]
    if not apart or not fast((mag - apart[0][1]) / apart[0][0], time - first, now["band"]):
        return "rate"
    return "not moving" if now["ssObjectId"] else "passed"
