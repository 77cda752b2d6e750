"""Packets in every form in which they come, and what is refused, with its reason."""

from __future__ import annotations

import base64
import json
import pickle
import random
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import polars as pl
import pytest

from streamgauge.apps.supernova.packets.decoder import Packets
from streamgauge.apps.supernova.packets.packet import NEIGHBOURS
from streamgauge.apps.supernova.packets.schemas import schemas_of
from streamgauge.operators.formats.messages import Messages
from streamgauge.operators.formats.registry import Registry

from ....operators.formats.schema_registry import SmallRegistry
from ..made import FILLERS, JD, as_json, container, packet

NEEDED = {"objectId": "ZTF26aaa", "candidate": {"jd": JD, "ra": 10.0, "dec": -5.0}}


def decoded(value: bytes, key: bytes | None = None, survey: Any = "ztf") -> dict[str, Any]:
    decoded = Packets(survey).decode(Messages.of([value], [key]))
    assert not decoded.reasons, decoded.reasons
    return decoded.frame.to_dicts()[0]


def refused(value: bytes | None, key: bytes | None = None, survey: Any = "ztf") -> str:
    (reason,) = Packets(survey).decode(Messages.of([value], [key])).reasons
    return reason


def plain_avro(packet: dict[str, Any]) -> tuple[bytes, bytes]:
    """A packet as Fink sends it: Avro without a header, and its schema as the key."""
    reader = fastavro.reader(BytesIO(container(packet)))
    record, schema = next(reader), reader.writer_schema
    file = BytesIO()
    fastavro.schemaless_writer(file, fastavro.parse_schema(schema), record)
    return file.getvalue(), json.dumps(schema).encode()


def test_containers_json_and_keyed_avro_give_the_same_row() -> None:
    dice = random.Random(3)
    for _ in range(20):
        one = packet(dice)
        rows = [decoded(container(one)), decoded(as_json(one)), decoded(*plain_avro(one))]
        assert rows[0] == rows[1] == rows[2]


@pytest.mark.parametrize("filler", FILLERS)
def test_every_filler_is_null(filler: Any) -> None:
    one = packet(random.Random(5))
    names = [name for name in one["candidate"] if name not in ("jd", "ra", "dec")]
    one["candidate"] |= dict.fromkeys(names, filler)
    one["prv_candidates"] = [{"jd": JD - 2, "fid": filler, "magpsf": filler, "isdiffpos": None}]
    for value in (as_json(one), container(one)):
        row = decoded(value)
        assert all(row[name] is None for name in NEIGHBOURS if name != "roid")
        assert row["mag"] is row["positive"] is row["age"] is row["band"] is row["detections"] is None
        assert row["past"][0]["mag"] is None and row["past"][0]["ago"] == 2


@pytest.mark.parametrize(
    ("name", "whose"),
    [
        ("PGIR21aeiljk", "Palomar Gattini-IR (PGIR)"),
        ("WNTR24aaaab", "WINTER (WNTR)"),
        ("X1", "'some pipeline'"),
        (17, "'some pipeline'"),
    ],
)
@pytest.mark.parametrize("field", ["objectId", "objectid"])
def test_packets_of_other_surveys_are_named_and_not_taken_for_ztf_s(
    name: Any, whose: str, field: str
) -> None:
    one = {key: value for key, value in packet(random.Random(9)).items() if key != "objectId"}
    reason = refused(as_json({**one, field: name, "publisher": "some pipeline"}))
    assert f"an alert of {whose}, not of ZTF: its object is {str(name)!r}" in reason


def test_fields_of_any_further_schema_are_taken_by_name() -> None:
    """As 4.01 added forced photometry to 3.3, and Fink its own fields."""
    one = packet(random.Random(6))
    more = {
        **one,
        "schemavsn": "4.01",
        "fp_hists": [{"jd": JD, "forcediffimflux": 1.0}],
        "lc_features_g": None,
    }
    assert decoded(as_json(more)) == decoded(as_json(one))
    least = decoded(json.dumps(NEEDED).encode())
    assert (least["object"], least["in_band"], least["past"], least["rb"]) == ("ZTF26aaa", 1, [], None)


def test_cutouts_within_json_are_base64() -> None:
    stamp = base64.b64encode(b"SIMPLE").decode()
    row = decoded(
        json.dumps({**NEEDED, "cutoutScience": {"stampData": stamp}, "cutoutTemplate": "?"}).encode()
    )
    assert row["science"] == b"SIMPLE" and row["template"] is row["difference"] is None


def test_what_is_no_alert_is_refused_with_its_reason() -> None:
    wrong = [
        (b"", "not an alert packet: it begins with b''"),
        (b"\xff\xfe\x00", "not an alert packet: it begins with b'\\xff\\xfe\\x00', and has no schema"),
        (b"Obj\x01ect", "not an Avro container file: "),
        (b"{", "not JSON: "),
        (b"[]", "not an alert packet"),
        (b"{}", "not an alert of ZTF's: it has no candidate"),
        (b'{"candidate": {"jd": 2460000.5}}', "it has no objectId"),
        (json.dumps({**NEEDED, "candidate": {"jd": 12, "ra": 1, "dec": 1}}).encode(), "its jd is 12"),
        (json.dumps({**NEEDED, "candidate": {"jd": JD, "ra": 361, "dec": 1}}).encode(), "its ra is 361"),
        (json.dumps({**NEEDED, "candidate": {"jd": JD, "ra": 3, "dec": None}}).encode(), "its dec is None"),
        (container(*[packet(random.Random(1))] * 2), "an Avro container of 2 alerts; a message is one"),
        (None, "no value (a tombstone)"),
    ]
    for value, reason in wrong:
        assert reason in refused(value), value
    assert "its key is not a schema" in refused(b"\x02", b'{"type": "recrod"}')
    assert "not Avro of the schema ztf.alert" in refused(b"\xff", plain_avro(packet(random.Random(1)))[1])


def test_broken_bytes_never_end_a_run() -> None:
    dice = random.Random(9)
    whole = [container(packet(dice)), as_json(packet(dice))]
    broken = []
    for _ in range(300):
        one = bytearray(dice.choice(whole))
        one[dice.randrange(len(one))] ^= 1 << dice.randrange(8)
        broken.append(bytes(one[: dice.randrange(1, len(one))] if dice.random() < 0.3 else one))
    decoded = Packets("ztf").decode(Messages.of(broken))
    assert decoded.frame.height + len(decoded.reasons) == 300 and all(
        len(why) < 500 for why in decoded.reasons
    )


def test_it_is_judged_message_by_message_travels_and_is_part_of_the_definition() -> None:
    dice = random.Random(8)
    values = [container(packet(dice)) if at % 3 else b"no" for at in range(12)]
    decoder = pickle.loads(pickle.dumps(Packets("ztf")))
    whole = decoder.decode(Messages.of(values)).frame
    parts = [decoder.decode(Messages.of([value])).frame for value in values]
    assert whole.equals(pl.concat(parts)) and dict(whole.schema) == decoder.schema
    assert decoder.definition() == {"survey": "ztf", "version": 2}


def test_rubin_s_schemas_come_from_the_package_and_the_others_are_named(recordings: Path) -> None:
    pytest.importorskip("lsst.alert.packet")
    value = (recordings / "astronomy" / "rubin_kafka_packet_schema_900.avro").read_bytes()
    row = decoded(value, survey="rubin")
    assert (row["object"], row["band"], row["positive"]) == ("7912941781254298", "r", False)
    assert row["science"].startswith(b"SIMPLE")
    assert "its schema 65412, version 654.12, is not in the installed" in refused(
        b"\0\0\0\xff\x84..", None, "rubin"
    )
    assert "not Avro of the schema lsst.v9_0.alert" in refused(value[:-3], None, "rubin")
    assert "not an alert packet" in refused(value, None, "ztf")


def test_forced_photometry_is_apart_and_its_fluxes_are_magnitudes() -> None:
    one = packet(random.Random(6))
    good = {"jd": JD - 2, "fid": 1, "forcediffimflux": 1000.0, "forcediffimfluxunc": 10.0, "magzpsci": 26.0}
    faint = {**good, "jd": JD - 3, "forcediffimflux": 29.0}
    negative = {**good, "jd": JD - 1, "forcediffimflux": -500.0}
    broken = [
        {**good, "forcediffimflux": -99999.0},
        {**good, "forcediffimfluxunc": 0.0},
        {**good, "magzpsci": None},
        {**good, "jd": float("nan")},
        None,
    ]
    row = decoded(as_json({**one, "fp_hists": [faint, good, *broken, negative]}))
    points = row.pop("forced")
    assert [(p["ago"], p["mag"], p["positive"]) for p in points] == [
        (1, None, False),
        (2, 18.5, True),
        (3, None, True),
    ]
    assert points[0]["limit"] == pytest.approx(26 - 2.5 * 1.69897) and points[1]["error"] == pytest.approx(
        0.01086, abs=1e-5
    )
    # Nothing else of a packet goes by it.
    without = decoded(as_json(one))
    assert without.pop("forced") == [] and without == row


def rubin_schema(version: str) -> dict[str, Any]:
    """The least of a schema of Rubin's, and in a namespace such as theirs."""
    names = ("midpointMjdTai", "ra", "dec")
    fields = [{"name": "diaObjectId", "type": "long"}, *({"name": name, "type": "double"} for name in names)]
    source = {"type": "record", "name": "diaSource", "fields": fields}
    return {
        "type": "record",
        "namespace": f"lsst.v{version}",
        "name": "alert",
        "fields": [{"name": "diaSource", "type": source}],
    }


RUBIN = {"diaSource": {"diaObjectId": 5, "midpointMjdTai": 61000.0, "ra": 1.0, "dec": 2.0}}


def framed(number: int, schema: dict[str, Any]) -> bytes:
    file = BytesIO(b"\0" + number.to_bytes(4, "big"))
    file.seek(5)
    fastavro.schemaless_writer(file, fastavro.parse_schema(schema), RUBIN)
    return file.getvalue()


@pytest.mark.parametrize("form", ["avsc", "avro"])
def test_rubin_s_schemas_come_from_a_file_if_one_is_named(tmp_path: Path, form: str) -> None:
    schema, path = rubin_schema("11_2"), tmp_path / f"packet.{form}"
    if form == "avsc":
        path.write_text(json.dumps(schema))
    else:
        with path.open("wb") as file:
            fastavro.writer(file, schema, [RUBIN])
    decoder = pickle.loads(pickle.dumps(Packets("rubin", schemas=(str(path),))))
    values = [framed(1102, schema), framed(900, schema), b"\0\0\0\4\x4e\1"]
    decoded = decoder.decode(Messages.of(values))
    assert decoded.frame["object"].to_list() == ["5"]
    assert "its schema 900 is in no file of --set schema, which have 1102" in decoded.reasons[0]
    assert "not Avro of the schema" in decoded.reasons[1]


def test_rubin_s_containers_need_neither_package_nor_registry() -> None:
    file = BytesIO()
    fastavro.writer(file, rubin_schema("11_2"), [RUBIN])
    assert decoded(file.getvalue(), survey="rubin")["object"] == "5"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "no Avro schema can be read from it"),
        ('{"type": "record", "name": "alert", "fields": []}', "its schema is 'alert', not one such as"),
        ('"string"', "its schema is not a record"),
    ],
)
def test_files_without_a_schema_of_rubin_s_are_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "x.avsc"
    path.write_text(text)
    with pytest.raises(ValueError, match=said):
        schemas_of([str(path)])
    with pytest.raises(OSError):
        schemas_of([str(tmp_path / "none.avsc")])


def test_rubin_s_schemas_come_from_a_registry_if_one_is_named() -> None:
    """The registry's own numbers count then, whatever the package holds."""
    schema = {
        "type": "record",
        "name": "alert",
        "fields": [
            {
                "name": "diaSource",
                "type": {
                    "type": "record",
                    "name": "diaSource",
                    "fields": [
                        {"name": "diaObjectId", "type": "long"},
                        *({"name": name, "type": "double"} for name in ("midpointMjdTai", "ra", "dec")),
                    ],
                },
            }
        ],
    }
    file = BytesIO(b"\0\0\0\0\7")
    file.seek(5)
    record = {"diaSource": {"diaObjectId": 5, "midpointMjdTai": 61000.0, "ra": 1.0, "dec": 2.0}}
    fastavro.schemaless_writer(file, fastavro.parse_schema(schema), record)
    with SmallRegistry().served() as registry:
        registry.add("alerts", schema, number=7)
        decoder = Packets("rubin", Registry.of(registry.url))
        decoded = decoder.decode(Messages.of([file.getvalue(), b"\0\0\0\0\x08" + file.getvalue()[5:]]))
    assert decoded.frame["object"].to_list() == ["5"] and "knows no schema 8" in decoded.reasons[0]
