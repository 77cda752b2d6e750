"""Rows of Sparkplug B: aliases by births, whatever the batches, and dead letters that say what to do."""

from __future__ import annotations

import pickle
import random
from typing import Any

import numpy as np
import pytest

from streamgauge.apps.iot.sparkplug import decoder as module
from streamgauge.apps.iot.sparkplug.decoder import Sparkplug
from streamgauge.operators.definition.decoders import decoder_definition
from streamgauge.operators.formats.retryable_error import Unavailable

from .conftest import Log, messages_of
from .made import DOUBLE, INT8, INT64, NOON, STRING, Plant, Sent, lively, payload

SPARKPLUG = Sparkplug("births", {"bootstrap.servers": "h:1", "sasl.password": "tr0ut"})


def readings(sent: list[Sent]) -> list[tuple[str, str, int, float]]:
    decoded = SPARKPLUG.decode(messages_of(sent))
    assert not decoded.reasons
    rows = decoded.frame.explode("readings").unnest("readings").drop_nulls("value")
    return rows.select("unit", "metric", "at", "value").rows()


def one(value: bytes, kind: str = "NDATA", device: str = "", arrived: int = NOON + 9) -> Sent:
    topic = f"spBv1.0/plant/{kind}/n1{'/' * bool(device)}{device}"
    return Sent(topic.encode(), value, arrived)


def refused(*sent: Sent) -> list[str]:
    return SPARKPLUG.decode(messages_of(list(sent))).reasons


@pytest.mark.parametrize("seed", range(4))
def test_aliases_are_those_of_the_birth_before_wherever_batches_end(log: Log, seed: int) -> None:
    plant, dice = lively(seed), random.Random(seed)
    log.holds(plant.sent)
    assert readings(plant.sent) == plant.readings
    cuts = sorted(dice.sample(range(len(plant.sent)), 20))
    parts = [part.tolist() for part in np.split(np.arange(len(plant.sent)), cuts)]
    again = [row for part in parts for row in readings([plant.sent[i] for i in part])]
    assert again == plant.readings


def test_it_is_the_same_after_a_restart_and_for_those_who_read_only_part(log: Log) -> None:
    """A worker of one partition meets data whose births it never reads itself."""
    plant = lively(9)
    log.holds(plant.sent)
    data = [sent for sent in plant.sent if b"DATA" in sent.key and b"/n2" in sent.key]
    wanted = {row for row in plant.readings if row[0].startswith("plant/n2")}
    result = readings(data)
    assert len(result) == len(data) > 50 and set(result) <= wanted
    assert pickle.loads(pickle.dumps(SPARKPLUG)) == SPARKPLUG


def test_null_historical_and_what_is_no_number_are_no_readings(log: Log) -> None:
    names = {"name": "heat", "datatype": DOUBLE}
    reported = payload(
        NOON,
        1,
        {**names, "double_value": 1.0},
        {**names, "double_value": 2.0, "is_historical": True, "timestamp": 5},
        {**names, "is_null": True},
        {"name": "state", "datatype": STRING, "string_value": "on"},
        {"name": "Node Control/Rebirth", "datatype": 11, "boolean_value": True},
        {**names, "double_value": 3.0, "timestamp": NOON - 1},
    )
    assert readings([one(reported)]) == [("plant/n1", "heat", NOON, 1.0), ("plant/n1", "heat", NOON - 1, 3.0)]
    assert log.births().session("plant/n1", NOON) is None  # none was needed: all metrics go by name


def test_datatypes_that_data_leave_out_are_those_of_the_birth(log: Log) -> None:
    names = [{"name": "low", "datatype": INT8, "int_value": 1}, {"name": "n", "alias": 4, "datatype": INT64}]
    birth = one(payload(NOON, 0, *names), "NBIRTH")
    data = payload(NOON + 1, 1, {"name": "low", "int_value": 0xFE}, {"alias": 4, "long_value": 2**64 - 9})
    (reason,) = refused(one(data))
    assert reason.startswith("no earlier birth of plant/n1") and "Node Control/Rebirth" in reason
    log.holds([birth])
    assert [row[1:] for row in readings([one(data)])] == [("low", NOON + 1, -2.0), ("n", NOON + 1, -9.0)]
    assert refused(one(payload(NOON + 1, 1, {"alias": 5, "double_value": 1.0}))) == [
        "the alias 5 is not in the birth of 2026-06-01T12:00:00.000+00:00 of plant/n1; ask for a rebirth: "
        "true for 'Node Control/Rebirth' at spBv1.0/plant/NCMD/n1"
    ]


def test_what_could_be_either_of_two_metrics_is_neither(log: Log) -> None:
    twice = [{"name": name, "alias": 0, "datatype": DOUBLE} for name in ("heat", "load")]
    log.holds([one(payload(NOON, 0, *twice, {"name": "flow", "alias": 1, "datatype": DOUBLE}), "NBIRTH")])
    flow = {"alias": 1, "double_value": 1.0}
    either = {"alias": 0, "double_value": 1.0}
    (reason,) = refused(one(payload(NOON, 1, flow)), one(payload(NOON, 2, flow, either)))
    assert reason.startswith("the alias 0 is not in the birth of")
    assert refused(one(payload(NOON, 3, {"double_value": 1.0}))) == [
        "a metric in it has neither a name nor an alias"
    ]


def test_what_is_no_payload_is_refused_and_commands_say_nothing(log: Log) -> None:
    good = payload(NOON, 1, {"name": "heat", "datatype": DOUBLE, "double_value": 1.0})
    sent = [
        one(b"\xff\xff"),
        one(good),
        Sent(b"home/kitchen", good, NOON),
        one(good, "NCMD"),
        Sent(b"spBv1.0/STATE/scada", b'{"online": true}', NOON),
    ]
    decoded = SPARKPLUG.decode(messages_of(sent)).checked(5, SPARKPLUG.schema)
    assert decoded.refused.tolist() == [0, 2] and "not a payload of Sparkplug B" in decoded.reasons[0]
    nothing = decoded.frame.select("seq", "dead", "readings")[1:].rows()
    assert nothing == [(None, None, None), (None, None, None)]


def test_a_death_is_that_of_the_session_that_goes_on(log: Log) -> None:
    plant = Plant(random.Random(1))
    plant.born("n1")
    plant.dies("n1")
    plant.born("n1")
    plant.dies("n1", session=0)  # reported late, after the node was back
    plant.say("DDEATH", "n1", "press", payload(plant.now, plant.next_seq("n1")))
    log.holds(plant.sent)
    frame = SPARKPLUG.decode(messages_of(plant.sent)).frame
    rows: list[Any] = [(row["unit"], row["dead"], row["birth"]) for row in frame.to_dicts()]
    born = [("plant/n1", 0, 1), ("plant/n1/press", 0, None), ("plant/n1/oven", 0, None)]
    death, late = ("plant/n1", 1, None), (None, None, None)
    assert rows == [*born, death, *born, late, ("plant/n1/press", 1, None)]


def test_births_that_can_not_be_read_make_no_dead_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(topic: str, settings: Any) -> Any:
        raise Unavailable("the births of Sparkplug in the topic births: away")

    monkeypatch.setattr(module, "birth_log", away)
    named = one(payload(NOON, 1, {"name": "heat", "double_value": 1.0}))
    alias = one(payload(NOON, 1, {"alias": 1, "double_value": 1.0}))
    assert not refused(named)
    with pytest.raises(Unavailable, match="away"):
        SPARKPLUG.decode(messages_of([named, alias, alias]))


def test_where_births_are_is_no_part_of_the_definition() -> None:
    assert decoder_definition(SPARKPLUG) == {"decoder": "Sparkplug", "version": 1}
