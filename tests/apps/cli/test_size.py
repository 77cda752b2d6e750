"""`streamgauge size`: an estimate on a screen and as JSON, and refusals that name the option."""

from __future__ import annotations

import json

from streamgauge.apps.sizing import measured

from ..command import Ran

LOAD = ["size", "--rate", "50000", "--keys", "1000", "--aggregates", "count,sum"]


def test_an_estimate_names_all_parts_and_the_processor(ran: Ran) -> None:
    text = ran(*LOAD, "--window", "1m")
    parts = ("partitions ", "workers ", "mergers ", "table topic ", measured.SOURCE, "--calibrate")
    assert all(part in text for part in parts)
    fields = json.loads(ran(*LOAD, "--json"))
    assert fields["workers"] == fields["mergers"] == 1 and fields["table_bytes_per_day"] > 0


def test_a_calibrated_estimate_names_this_machine(ran: Ran) -> None:
    text = ran(*LOAD, "--calibrate")
    assert "this machine" in text and measured.SOURCE not in text


def test_refusals(ran: Ran) -> None:
    assert "must be longer than 0" in ran(*LOAD, "--window", "0s", code=2)
    assert ran(*LOAD[:-1], "nope", code=1).startswith("error: no aggregate is called 'nope'")
    assert "raise --partitions" in ran("size", "--rate", "1e9", "--partitions", "1", code=1)
