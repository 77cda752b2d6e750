"""Rubin's fluxes and times as magnitudes and UTC."""

from __future__ import annotations

import math
from typing import Any

import pytest

from streamgauge.apps.supernova.packets.rubin import packet
from streamgauge.operators.formats.per_message import Misread


def source(mjd: float = 61_000.0, flux: float = 3631.0, **more: Any) -> dict[str, Any]:
    return {
        "diaSourceId": 1,
        "diaObjectId": 2,
        "ssObjectId": 0,
        "midpointMjdTai": mjd,
        "ra": 10.0,
        "dec": -30.0,
        "band": "r",
        "psfFlux": flux,
        "psfFluxErr": flux / 10,
        **more,
    }


def test_fluxes_are_magnitudes_and_times_utc() -> None:
    result = packet({"diaSource": source(), "cutoutScience": b"x"})
    # 3,631 Jy is magnitude 0, so 3,631 nJy is 22.5.
    assert result["mag"] == pytest.approx(22.5, abs=1e-3)
    assert result["error"] == pytest.approx(2.5 / math.log(10) / 10)
    assert result["limit"] == pytest.approx(22.5 + 2.5 * math.log10(2), abs=1e-3)
    assert result["at"] == (61_000 - 40_587) * 86_400_000 - 37_000
    assert (result["object"], result["alert"], result["science"]) == ("2", 1, b"x")


@pytest.mark.parametrize("flux", [-5.0, 0.0, float("nan"), None])
def test_what_is_not_above_the_template_has_no_magnitude(flux: Any) -> None:
    result = packet({"diaSource": {**source(), "psfFlux": flux}})
    assert result["mag"] is result["error"] is None and not result["positive"]


def test_negative_sources_are_not_positive_whatever_their_flux() -> None:
    assert not packet({"diaSource": source(isNegative=True)})["positive"]
    assert packet({"diaSource": source(isNegative=False)})["positive"]


def test_the_night_is_from_noon_to_noon() -> None:
    noon = 61_000.5 + 37 / 86_400
    assert packet({"diaSource": source(noon - 0.001)})["night"] == "2025-11-20"
    assert packet({"diaSource": source(noon + 0.001)})["night"] == "2025-11-21"
    assert packet({"diaSource": source(noon + 0.999)})["night"] == "2025-11-21"


def test_age_and_detections_in_the_band_come_from_the_object_or_from_what_was_before() -> None:
    past = [
        source(60_997.0, 1000.0),
        source(60_999.0, 2000.0),
        source(60_999.5, 1.0, band="g"),
        source(60_998, -1),
    ]
    result = packet({"diaSource": source(), "prvDiaSources": past, "diaObject": None})
    assert (
        result["age"] == 3 and result["in_band"] == 3 and [p["ago"] for p in result["past"]] == [0.5, 1, 2, 3]
    )
    assert [p["same"] for p in result["past"]] == [False, True, True, True]
    whole = {"firstDiaSourceMjdTai": 60_990.0, "nDiaSources": 7, "r_psfFluxNdata": 6}
    result = packet({"diaSource": source(), "prvDiaSources": past, "diaObject": whole})
    assert (result["age"], result["detections"], result["in_band"]) == (10, 7, 6)
    # A filler says nothing.
    whole = {"firstDiaSourceMjdTai": float("nan"), "nDiaSources": None, "r_psfFluxNdata": None}
    assert packet({"diaSource": source(), "prvDiaSources": past, "diaObject": whole})["age"] == 3


def test_bodies_of_the_solar_system_move() -> None:
    assert not packet({"diaSource": source(), "ssSource": None})["moving"]
    assert packet({"diaSource": source(), "ssSource": {}})["moving"]
    moving = packet({"diaSource": source(diaObjectId=None, ssObjectId=77)})
    assert moving["moving"] and moving["object"] == "SSO 77"


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (3, "it has no diaSource"),
        ({"candidate": {}}, "it has no diaSource"),
        ({"diaSource": source(diaObjectId=0)}, "neither diaObjectId nor ssObjectId"),
        ({"diaSource": source(float("nan"))}, "its midpointMjdTai is nan"),
        ({"diaSource": {**source(), "dec": -91}}, "its dec is -91"),
    ],
)
def test_what_is_no_alert_of_rubin_s_is_refused(record: Any, said: str) -> None:
    with pytest.raises(Misread, match=said):
        packet(record)


def test_forced_photometry_is_apart() -> None:
    forced = [
        source(60_999.0, 1000.0, psfFluxErr=10.0),
        source(60_998.0, 20.0, psfFluxErr=10.0),
        source(psfFluxErr=None),
        3,
    ]
    result = packet({"diaSource": source(), "prvDiaForcedSources": forced})
    assert [(point["ago"], point["mag"] and round(point["mag"], 3)) for point in result["forced"]] == [
        (1, 23.9),
        (2, None),
    ]
    assert result["past"] == [] and result["age"] == 0


def older(mjd: float = 60_000.0, flux: float = 100.0, **more: Any) -> dict[str, Any]:
    """A source of schemas before 6.0, as ELAsTiCC and the data previews have them."""
    return {
        "diaSourceId": 1,
        "diaObjectId": 2,
        "midPointTai": mjd,
        "filterName": "Y",
        "ra": 10.0,
        "decl": -30.0,
        "psFlux": flux,
        "psFluxErr": flux / 10,
        **more,
    }


def test_elasticc_s_packets_are_read_under_their_names_with_their_zero_point() -> None:
    record = {
        "alertId": 3,
        "diaSource": older(),
        "prvDiaSources": [older(59_998.0, 50.0)],
        "prvDiaForcedSources": [older(59_990.0, 25.0)],
        "diaObject": {"diaObjectId": 2, "simVersion": "v1", "z_final": 0.1},
    }
    result = packet(record)
    # FLUXCAL has the zero point 27.5.
    assert result["mag"] == pytest.approx(22.5) and result["error"] == pytest.approx(2.5 / math.log(10) / 10)
    assert (result["band"], result["ra"], result["dec"], result["positive"]) == ("y", 10.0, -30.0, True)
    assert [(point["ago"], point["same"]) for point in result["past"]] == [(2.0, True)]
    assert result["past"][0]["mag"] == pytest.approx(27.5 - 2.5 * math.log10(50))
    assert result["forced"][0]["mag"] == pytest.approx(27.5 - 2.5 * math.log10(25))
    assert (result["age"], result["in_band"]) == (2.0, 2.0)


def test_older_packets_of_rubin_s_own_are_in_nanojanskys() -> None:
    assert packet({"diaSource": older(flux=3631.0)})["mag"] == pytest.approx(22.5, abs=1e-3)


@pytest.mark.parametrize("flux", [0.0, None, float("nan"), -3.0])
def test_an_older_source_without_light_has_no_magnitude(flux: Any) -> None:
    result = packet({"diaSource": {**older(), "psFlux": flux}})
    assert result["mag"] is None and not result["positive"]
