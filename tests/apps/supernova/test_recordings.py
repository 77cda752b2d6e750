"""Files of alerts as a broker's messages."""

from __future__ import annotations

import random
import tarfile
from io import BytesIO
from pathlib import Path

import polars as pl
import pytest

from streamgauge.apps.app import App
from streamgauge.apps.jobs.job import Job
from streamgauge.apps.registry import app_of
from streamgauge.apps.running.recording import RecordedMessages
from streamgauge.apps.supernova.packets.decoder import Packets
from streamgauge.apps.supernova.recordings import messages
from streamgauge.operators.formats.messages import Messages

from .made import JD, as_json, container, packet, rubin

APP: App = app_of("supernova")


def test_a_container_of_many_is_a_message_each(tmp_path: Path) -> None:
    dice = random.Random(1)
    packets = [packet(dice, f"ZTF{at}", JD + at) for at in range(5)]
    path = tmp_path / "night.avro"
    path.write_bytes(container(*packets))
    assert APP.format(None, path).name == "ztf"
    sent = list(messages(path, Packets("ztf")))
    assert [one.key for one in sent] == [f"ZTF{at}".encode() for at in range(5)]
    rows = Packets("ztf").decode(Messages.of([one.value for one in sent])).frame
    assert (
        rows["mag"].to_list()
        == Packets("ztf").decode(Messages.of([container(one) for one in packets])).frame["mag"].to_list()
    )
    assert [one.sent_ms for one in sent] == [1_756_792_800_000 + at * 86_400_000 for at in range(5)]


@pytest.mark.parametrize(("space", "whose"), [("winter", "WINTER"), ("pgir", "PGIR"), ("turbo", "TURBO")])
def test_files_of_surveys_whose_packets_look_like_ztf_s_are_named(
    tmp_path: Path, space: str, whose: str
) -> None:
    path = tmp_path / "alerts.avro"
    path.write_bytes(container(packet(random.Random(1)), space=space))
    with pytest.raises(ValueError, match=rf"alerts\.avro has alerts of .*{whose}"):
        APP.format(None, path)


@pytest.mark.parametrize("packing", ["gz", ""])
def test_a_night_of_the_archive_is_a_tar_of_containers(tmp_path: Path, packing: str) -> None:
    dice = random.Random(5)
    path = tmp_path / f"ztf_public_20260801.tar{packing and '.gz'}"
    with tarfile.open(path, f"w:{packing}") as archive:
        for at in range(3):
            data = container(packet(dice, f"ZTF{at}", JD + at))
            member = tarfile.TarInfo(f"{at}.avro")
            member.size = len(data)
            archive.addfile(member, BytesIO(data))
    assert APP.format(None, path).name == "ztf"
    assert [one.key for one in messages(path, Packets("ztf"))] == [b"ZTF0", b"ZTF1", b"ZTF2"]


def test_lines_of_json_are_sent_as_they_are_and_broken_ones_too(tmp_path: Path) -> None:
    dice = random.Random(2)
    values = [as_json(packet(dice, "ZTFa")), b'{"candidate": 3', as_json(packet(dice, "ZTFb"))]
    path = tmp_path / "alerts.jsonl"
    path.write_bytes(b"\n".join([values[0], b"", *values[1:]]) + b"\n")
    assert APP.format(None, path).name == "fink"
    sent = list(messages(path, Packets("ztf")))
    assert [one.value for one in sent] == values and [one.key for one in sent] == [b"ZTFa", None, b"ZTFb"]


def test_tables_are_sent_in_the_order_of_their_times(tmp_path: Path) -> None:
    dice = random.Random(3)
    packets = [packet(dice, f"ZTF{at}", JD + at % 7) for at in range(30)]
    path = tmp_path / "alerts.parquet"
    pl.DataFrame(packets, infer_schema_length=None, strict=False).write_parquet(path)
    assert APP.format(None, path).name == "fink"
    sent = list(messages(path, Packets("ztf")))
    times = [one.sent_ms for one in sent]
    assert times == sorted(times) and {one.key for one in sent} == {p["objectId"].encode() for p in packets}


def test_rubin_s_alerts_come_in_tables_and_containers_too(tmp_path: Path) -> None:
    dice = random.Random(4)
    packets = [rubin(dice, name) for name in (3, 1, 2)]
    path, lines = tmp_path / "alerts.parquet", tmp_path / "alerts.json"
    pl.DataFrame(packets, infer_schema_length=None, strict=False).write_parquet(path)
    lines.write_bytes(b"\n".join(map(as_json, packets)))
    for file, order in ((path, [b"1", b"2", b"3"]), (lines, [b"3", b"1", b"2"])):
        assert APP.format(None, file).name == "rubin"
        assert [one.key for one in messages(file, Packets("rubin"))] == order


def test_a_broken_file_is_a_message_that_will_be_refused(tmp_path: Path) -> None:
    path = tmp_path / "broken.avro"
    path.write_bytes(container(packet(random.Random(1)))[:-40])
    (sent,) = messages(path, Packets("ztf"))
    assert (sent.value, sent.key, sent.sent_ms) == (path.read_bytes(), None, None)


def test_files_that_go_back_in_time_are_sent_as_time_goes_on(tmp_path: Path) -> None:
    paths = [tmp_path / f"{at}.avro" for at in range(3)]
    for path, day in zip(paths, (5, 1, 9)):
        path.write_bytes(container(packet(random.Random(day), jd=JD + day)))
    recorded = RecordedMessages(Job.of(APP, "ztf"), paths)
    days = [((one.sent_ms or 0) - 1_756_792_800_000) // 86_400_000 for one in recorded.messages()]
    assert days == [5, 5, 9]
    (batch,) = recorded.batches()
    assert batch.sent.tolist() == [one.sent_ms for one in recorded.messages()]
