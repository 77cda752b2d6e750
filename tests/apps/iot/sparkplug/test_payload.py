"""Topics and numbers of Sparkplug B, as the specification has them and as implementations write them."""

from __future__ import annotations

from typing import Any

import pytest

from streamgauge.apps.iot.sparkplug.payload import number_of, payload_of, speaker_of
from streamgauge.operators.formats.per_message import Misread

from ....cases import each
from .made import (
    BOOLEAN,
    DATETIME,
    DOUBLE,
    FLOAT,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    UINT8,
    UINT32,
    UINT64,
    payload,
)


@each(
    ("datatype", "given", "wanted"),
    [
        (INT8, {"int_value": 0xFF}, -1.0),  # as Python's implementation writes it
        (INT8, {"int_value": 0xFFFFFFFF}, -1.0),  # as Java's does
        (INT8, {"int_value": 127}, 127.0),
        (INT16, {"int_value": 0x8000}, -32768.0),
        (INT32, {"int_value": 0xFFFFFFFE}, -2.0),
        (INT64, {"long_value": 2**64 - 3}, -3.0),
        (INT64, {"int_value": 5}, 5.0),
        (UINT8, {"int_value": 200}, 200.0),
        (UINT32, {"int_value": 2**32 - 1}, 4294967295.0),
        (UINT64, {"long_value": 2**63}, 2.0**63),
        (FLOAT, {"float_value": 1.5}, 1.5),
        (DOUBLE, {"double_value": -0.1}, -0.1),
        (BOOLEAN, {"boolean_value": True}, 1.0),
        (BOOLEAN, {"boolean_value": False}, 0.0),
        (STRING, {"string_value": "7"}, None),
        (DATETIME, {"long_value": 1_780_315_200_000}, None),
        (DOUBLE, {"double_value": 1.0, "is_null": True}, None),
        (DOUBLE, {"is_null": True}, None),
        (16, {"dataset_value": {"num_of_columns": 2}}, None),
    ],
)
def test_numbers_are_read_by_their_datatypes(
    datatype: int, given: dict[str, Any], wanted: float | None
) -> None:
    (metric,) = payload_of(payload(1, 2, {"name": "m", "datatype": datatype, **given})).metrics
    assert number_of(metric, metric.datatype) == wanted


@pytest.mark.parametrize(
    ("topic", "kind", "unit"),
    [
        ("spBv1.0/plant/NBIRTH/n1", "NBIRTH", "plant/n1"),
        ("spBv1.0/a plant/DDATA/n1/the press", "DDATA", "a plant/n1/the press"),
        ("spBv1.0/plant/NCMD/n1", "", "plant/n1"),
        ("spBv1.0/plant/DCMD/n1/press", "", "plant/n1/press"),
        ("spBv1.0/STATE/scada", "", "/"),
    ],
)
def test_who_speaks_is_in_the_topic(topic: str, kind: str, unit: str) -> None:
    assert (speaker_of(topic.encode()).kind, speaker_of(topic.encode()).unit) == (kind, unit)


@pytest.mark.parametrize(
    "topic",
    [
        None,
        "",
        "home/kitchen",
        "spAv1.0/g/NDATA/n",
        "spBv1.0/g/NDATA",
        "spBv1.0/g/NDATA/n/d",
        "spBv1.0/g/DDATA/n",
    ],
)
def test_another_topic_is_refused(topic: str | None) -> None:
    with pytest.raises(Misread, match="not a topic of Sparkplug B such as spBv1"):
        speaker_of(None if topic is None else topic.encode())
