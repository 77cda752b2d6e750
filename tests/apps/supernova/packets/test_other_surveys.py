"""Packets of surveys whose form is ZTF's, by the schemas that Kowalski holds of them: named, never counted.

Made up here, with the fields and spellings of https://github.com/skyportal/kowalski (its recorded alerts of
2021 and 2024): PGIR's pipeline is `pgirdps`, WINTER's `WINTER-mirar`, which writes `objectid` and
`cutout_science`, and TURBO's objects have no prefix yet. TURBO's schema breaks Avro's own rules.
"""

from __future__ import annotations

import json
import random
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import pytest

from streamgauge.apps.registry import app_of
from streamgauge.apps.supernova.packets.decoder import Packets, schema_name
from streamgauge.operators.formats.messages import Messages

from ..made import JD, as_json, packet

SURVEYS: dict[str, dict[str, Any]] = {
    "pgir": {
        "whose": "Palomar Gattini-IR (PGIR)",
        "record": {"objectId": "PGIR21aeiljk", "publisher": "pgirdps", "schemavsn": "0.1"},
        "cutouts": ("cutoutScience", "cutoutTemplate", "cutoutDifference"),
        "sign": ("string", "1"),
    },
    "winter": {
        "whose": "WINTER (WNTR)",
        "record": {"objectid": "WNTR24awati", "publisher": "WINTER-mirar", "schemavsn": "0.1"},
        "cutouts": ("cutout_science", "cutout_template", "cutout_difference"),
        "sign": ("boolean", True),
    },
    "turbo": {
        "whose": "TURBO",
        "record": {"objectId": "None.20", "publisher": "turbo_test", "schemavsn": "0.1"},
        "cutouts": ("cutoutScience", "cutoutTemplate", "cutoutDifference"),
        "sign": ("float", 1.0),
    },
}


def schema_of(space: str, fid: Any) -> dict[str, Any]:
    """The form of a survey's schema; `fid` is the field of its filter."""
    kind = SURVEYS[space]["sign"][0]
    places = [{"name": name, "type": "double"} for name in ("jd", "ra", "dec")]
    seen = [{"name": "magpsf", "type": "float"}, {"name": "isdiffpos", "type": kind}]
    candidate = {"type": "record", "name": "candidate", "namespace": f"{space}.alert"}
    earlier = {"type": "record", "name": "prv_candidate", "namespace": f"{space}.alert"}
    past = {"type": "array", "items": {**earlier, "fields": [*places, *seen]}}
    texts = [{"name": name, "type": "string"} for name in SURVEYS[space]["record"]]
    return {
        "type": "record",
        "name": "alert",
        "namespace": space,
        "version": "0.1",
        "fields": [
            *texts,
            {"name": "candid", "type": "long"},
            {"name": "candidate", "type": {**candidate, "fields": [*places, fid, *seen]}},
            {"name": "prv_candidates", "type": [past, "null"]},
            *({"name": name, "type": "bytes"} for name in SURVEYS[space]["cutouts"]),
        ],
    }


def alert_of(space: str) -> dict[str, Any]:
    kept = {
        "jd": JD,
        "ra": 10.0,
        "dec": -5.0,
        "fid": 2,
        "magpsf": 13.4,
        "isdiffpos": SURVEYS[space]["sign"][1],
    }
    stamps = dict.fromkeys(SURVEYS[space]["cutouts"], b"SIMPLE")
    return {
        **SURVEYS[space]["record"],
        "candid": 3608694,
        "candidate": kept,
        "prv_candidates": None,
        **stamps,
    }


def container_of(space: str) -> bytes:
    """One alert as the survey sends it; TURBO's schema says that an int is null unless given."""
    file = BytesIO()
    fastavro.writer(file, schema_of(space, {"name": "fid", "type": "int"}), [alert_of(space)])
    if space != "turbo":
        return file.getvalue()
    records = fastavro.reader(BytesIO(file.getvalue()))
    body = BytesIO()
    fastavro.schemaless_writer(
        body, fastavro.parse_schema(schema_of(space, {"name": "fid", "type": "int"})), next(records)
    )
    broken = schema_of(space, {"name": "fid", "type": "int", "default": None})
    header = {
        "magic": b"Obj\x01",
        "meta": {"avro.codec": b"null", "avro.schema": json.dumps(broken).encode()},
        "sync": b"s" * 16,
    }
    whole = BytesIO()
    fastavro.schemaless_writer(whole, HEADER, header)
    for count in (1, len(body.getvalue())):
        fastavro.schemaless_writer(whole, "long", count)
    return whole.getvalue() + body.getvalue() + b"s" * 16


HEADER = fastavro.parse_schema(
    {
        "type": "record",
        "name": "header",
        "fields": [
            {"name": "magic", "type": {"type": "fixed", "name": "magic", "size": 4}},
            {"name": "meta", "type": {"type": "map", "values": "bytes"}},
            {"name": "sync", "type": {"type": "fixed", "name": "sync", "size": 16}},
        ],
    }
)


def refused(value: bytes) -> str:
    (reason,) = Packets("ztf").decode(Messages.of([value])).reasons
    return reason


@pytest.mark.parametrize("space", SURVEYS)
def test_an_alert_of_another_survey_is_a_dead_letter_that_names_it(space: str) -> None:
    about = SURVEYS[space]
    plain = {key: value for key, value in packet(random.Random(9)).items() if key != "objectId"}
    for value in (container_of(space), as_json({**plain, **about["record"]})):
        reason = refused(value)
        assert f"an alert of {about['whose']}, not of ZTF" in reason, reason
        assert "the cuts are ZTF's" in reason


@pytest.mark.parametrize("space", SURVEYS)
def test_a_recording_of_another_survey_is_refused_by_its_schema(space: str, tmp_path: Path) -> None:
    path = tmp_path / "3608694.avro"
    path.write_bytes(container_of(space))
    assert schema_name(path.read_bytes()) == f"{space}.alert"
    with pytest.raises(ValueError) as error:
        app_of("supernova").format(None, path)
    assert f"has alerts of {SURVEYS[space]['whose']}" in str(error.value)


def test_a_container_of_ztf_that_breaks_avro_s_rules_says_so_and_names_nobody() -> None:
    value = container_of("turbo").replace(b'"namespace": "turbo', b'"namespace": "zturf')
    assert "not an Avro container file" in refused(value) and "an alert of" not in refused(value)
