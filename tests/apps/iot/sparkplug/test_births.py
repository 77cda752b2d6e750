"""Which birth a message goes by: whatever order births are read in, and refused where it isn't sure."""

from __future__ import annotations

import logging
import random

import pytest

from streamgauge.apps.iot.sparkplug.births import Birth, Births
from streamgauge.apps.iot.sparkplug.payload import Speaker
from streamgauge.operators.formats.per_message import Misread

NODE, PRESS = Speaker("NDATA", "plant", "n"), Speaker("DDATA", "plant", "n", "press")


def birth(stamp: int, name: str = "heat", arrived: int | None = None, session: int | None = None) -> Birth:
    return Birth(stamp, stamp + 5 if arrived is None else arrived, session, {1: (name, 10)})


def test_it_is_the_last_one_that_is_not_later_however_births_come() -> None:
    dice = random.Random(2)
    for _ in range(50):
        stamps = sorted(dice.sample(range(1_000_000), 12))
        all_of_them = [birth(stamp, dice.choice("abc")) for stamp in stamps]
        births = Births()
        shuffled = dice.sample(all_of_them * 2, 24)
        for one in shuffled:
            births.add(NODE, one)
        for stamp in [*stamps, *(dice.randrange(stamps[0], 1_000_000) for _ in range(40))]:
            wanted = max((one for one in all_of_them if one.stamp <= stamp), key=lambda one: one.stamp)
            assert births.of(NODE, stamp, stamp + 5) == wanted


def test_data_before_any_birth_says_what_to_do() -> None:
    births = Births()
    births.add(NODE, birth(10_000))
    for speaker, stamp in ((NODE, 9_999), (PRESS, 20_000), (Speaker("NDATA", "plant", "other"), 20_000)):
        with pytest.raises(
            Misread, match=r"no earlier birth of plant/.* known; .*Rebirth' at spBv1\.0/plant/NCMD/"
        ):
            births.of(speaker, stamp, stamp)


def test_a_device_is_born_again_after_its_node() -> None:
    births = Births()
    births.add(PRESS, birth(1_000))
    assert births.of(PRESS, 1_500, 1_500).stamp == 1_000  # its node's birth was before all that is kept
    births.add(NODE, birth(500))
    assert births.of(PRESS, 1_500, 1_500).stamp == 1_000
    births.add(NODE, birth(2_000))
    assert births.of(PRESS, 1_999, 2_010).stamp == 1_000
    with pytest.raises(Misread, match="was not born again after its node"):
        births.of(PRESS, 2_500, 2_500)
    births.add(PRESS, birth(2_600, "other"))
    assert births.of(PRESS, 2_600, 2_600).metrics[1][0] == "other"


def test_a_clock_that_goes_back_makes_no_guess() -> None:
    births = Births()
    births.add(NODE, birth(1_000_000))
    births.add(NODE, birth(9_000_000, "other"))
    # Stamps of two topics may cross by a little.
    assert births.of(NODE, 8_999_000, 9_010_000).stamp == 1_000_000
    with pytest.raises(Misread, match="the node's clock has gone back"):
        births.of(NODE, 5_000_000, 9_200_000)


def test_a_session_is_that_of_the_last_birth_that_had_come() -> None:
    births = Births()
    assert births.session("plant/n", 1) is None
    for number, stamp in enumerate((100, 200, 300)):
        births.add(NODE, birth(stamp, session=number))
    assert [births.session("plant/n", at) for at in (104, 105, 250, 304, 1_000)] == [None, 0, 1, 1, 2]


def test_a_birth_that_comes_too_late_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    births = Births()
    births.add(NODE, birth(100))
    births.of(NODE, 500, 500)
    with caplog.at_level(logging.WARNING):
        births.add(NODE, birth(300))  # with the same metrics: nothing was read wrongly
        births.add(NODE, birth(600, "other"))
        assert not caplog.records
        births.add(NODE, birth(400, "other"))
    (record,) = caplog.records
    assert "came after messages that it was to explain" in record.getMessage()
