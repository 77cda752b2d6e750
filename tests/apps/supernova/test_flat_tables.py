"""Tables with a row for each detection give the packets that a survey would have sent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from streamgauge.apps.registry import app_of
from streamgauge.apps.supernova.packets.decoder import Packets, Survey
from streamgauge.apps.supernova.packets.scores import scores_of
from streamgauge.apps.supernova.recordings import messages
from streamgauge.operators.formats.messages import Messages

APP = app_of("supernova")
MJD = 60_920.25
LOOKS = [
    (0.0, "ZTF1", 19.0, 1, 0.1),
    (-3.0, "ZTF1", 19.8, 1, 0.2),
    (1.0, "ZTF2", 18.5, 2, 0.9),
    (-40.0, "ZTF1", 20.1, 2, 0.3),
]
"""Days since `MJD`, the object, the magnitude, the filter and a score, not in the order of time."""


def fink_ztf(days: float, name: str, mag: float, fid: int, score: float) -> dict[str, Any]:
    return {
        "i:objectId": name,
        "i:candid": 7,
        "i:jd": MJD + days + 2_400_000.5,
        "i:fid": fid,
        "i:ra": 10.0,
        "i:dec": 20.0,
        "i:magpsf": mag,
        "i:sigmapsf": 0.1,
        "i:isdiffpos": "t",
        "d:rf_snia_vs_nonia": score,
    }


def alerce(days: float, name: str, mag: float, fid: int, score: float) -> dict[str, Any]:
    return {
        "oid": name,
        "candid": "7",
        "mjd": MJD + days,
        "fid": fid,
        "ra": 10.0,
        "dec": 20.0,
        "magpsf": mag,
        "sigmapsf": 0.1,
        "isdiffpos": 1,
        "rf_snia_vs_nonia": score,
    }


def data_release(days: float, name: str, mag: float, fid: int, score: float) -> dict[str, Any]:
    flux = 10 ** ((31.4 - mag) / 2.5)
    return {
        "diaObjectId": int(name[3:]),
        "diaSourceId": 7,
        "midpointMjdTai": MJD + days + 37 / 86_400,
        "band": "gr"[fid - 1],
        "ra": 10.0,
        "dec": 20.0,
        "psfFlux": flux,
        "psfFluxErr": flux / 10.86,
        "rf_snia_vs_nonia": score,
    }


def fink_rubin(*look: Any) -> dict[str, Any]:
    row = data_release(*look)
    score = row.pop("rf_snia_vs_nonia")
    return {**{f"r:{name}": value for name, value in row.items()}, "f:rf_snia_vs_nonia": score}


KINDS: dict[str, tuple[Callable[..., dict[str, Any]], str, Survey, str]] = {
    "Fink's of ZTF": (fink_ztf, "fink", "ztf", "rf_snia_vs_nonia"),
    "ALeRCE's detections": (alerce, "fink", "ztf", "rf_snia_vs_nonia"),
    "Fink's of Rubin": (fink_rubin, "rubin", "rubin", "rf_snia_vs_nonia"),
    "Rubin's DiaSource": (data_release, "rubin", "rubin", "diaSource.rf_snia_vs_nonia"),
}


@pytest.mark.parametrize(("row", "form", "survey", "score"), KINDS.values(), ids=KINDS)
def test_detections_come_as_packets_with_what_was_before(
    row: Callable[..., dict[str, Any]], form: str, survey: Survey, score: str, tmp_path: Path
) -> None:
    path = tmp_path / "detections.parquet"
    pl.DataFrame([row(*look) for look in LOOKS]).write_parquet(path)
    assert APP.format(None, path).name == form
    decoder = Packets(survey, scores=scores_of({"scores": score}))
    sent = list(messages(path, decoder))
    decoded = decoder.decode(Messages.of([one.value for one in sent]))
    assert (
        not decoded.reasons and [one.sent_ms for one in sent] == decoded.frame["at"].dt.epoch("ms").to_list()
    )
    rows = decoded.frame.select("object", "mag", "band", "positive", "scores").rows()
    names = ["ZTF1", "ZTF1", "ZTF1", "ZTF2"] if survey == "ztf" else ["1", "1", "1", "2"]
    bands, scores = ["r", "g", "g", "r"], [0.3, 0.2, 0.1, 0.9]
    for packet, name, mag, band, number in zip(rows, names, [20.1, 19.8, 19.0, 18.5], bands, scores):
        assert packet == (name, pytest.approx(mag), band, True, [number])
    past = [[round(point["mag"], 6) for point in one] for one in decoded.frame["past"].to_list()]
    # A packet of ZTF's looks back for 30 days, one of Rubin's for a year.
    assert past == [
        [],
        [20.1] if survey == "rubin" else [],
        [19.8, 20.1] if survey == "rubin" else [19.8],
        [],
    ]


def test_a_table_of_objects_is_no_table_of_alerts(tmp_path: Path) -> None:
    path = tmp_path / "objects.parquet"
    pl.DataFrame({"oid": ["ZTF1"], "meanra": [1.0], "firstmjd": [MJD]}).write_parquet(path)
    with pytest.raises(ValueError, match="matches no format of supernova"):
        APP.format(None, path)
