"""Logs in JSON, as programs write them, by the names that are usual and by others."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from streamgauge.apps.logs.members import moment
from streamgauge.apps.recordings.compressed_files import RecordingError

from .reading import alerts_of, job_of, read

ECS = {
    "@timestamp": "2026-01-01T00:00:00.000Z",
    "log.level": "error",
    "message": "POST: order 4711 of user ann failed",
    "service": {"name": "shop"},
    "client": {"ip": "192.0.2.9"},
    "user": {"name": "ann"},
    "url": {"path": "/orders"},
    "http": {"request": {"method": "POST"}, "response": {"status_code": 503, "bytes": 17}},
    "event": {"duration": 250_000_000},
    "user_agent": {"original": "curl/8"},
}
NGINX = {
    "time_local": "01/Jan/2026:01:00:00 +0100",
    "remote_addr": "192.0.2.9",
    "remote_user": "ann",
    "request_uri": "/orders",
    "request_method": "POST",
    "status": "503",
    "body_bytes_sent": "17",
    "request_time": "0.250",
    "http_user_agent": "curl/8",
    "server": "shop",
}
PINO = {
    "level": 50,
    "time": 1_767_225_600_000,
    "hostname": "shop",
    "msg": "order 4711 of user ann failed",
    "req": {"method": "POST", "url": "/orders", "headers": {"user-agent": "curl/8"}},
    "res": {"statusCode": 503},
    "responseTime": 250,
    "ip": "192.0.2.9",
    "userId": 7,
    "username": "ann",
    "size": 17,
}
CADDY = {
    "level": "error",
    "ts": 1_767_225_600.0,
    "logger": "shop",
    "msg": "order 4711 of user ann failed",
    "request": {"remote_ip": "192.0.2.9", "method": "POST", "uri": "/orders"},
    "user_id": "ann",
    "duration": 0.25,
    "size": 17,
    "status": 503,
    "agent": "curl/8",
}


def recorded(tmp_path: Path, *events: Any) -> Path:
    path = tmp_path / "events.jsonl"
    path.write_text("\n".join(one if isinstance(one, str) else json.dumps(one) for one in events) + "\n")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("event", [ECS, NGINX, PINO, CADDY], ids=["ecs", "nginx", "pino", "caddy"])
def test_usual_names_are_found(tmp_path: Path, event: dict[str, Any]) -> None:
    path = recorded(tmp_path, event)
    name, rows, _ = read(path)
    (row,) = rows.to_dicts()
    assert name == "json"
    assert (row["host"], row["address"], row["user"]) == ("shop", "192.0.2.9", "ann")
    assert (row["operation"], row["status"], row["agent"]) == ("/orders", "503", "curl/8")
    assert (row["failed"], row["refused"], row["bytes"], row["seconds"]) == (1, 0, 17, 0.25)
    assert "POST" in row["term"] and "4711" not in row["term"]
    job = job_of(path)
    assert [m.sent_ms for m in job.form.messages(path, job.settings)] == [1_767_225_600_000]


@pytest.mark.slow
def test_levels_fail_by_word_and_by_number(tmp_path: Path) -> None:
    levels = ["INFO", "warn", "ERROR", "Fatal", 3, 6, "3", 30, 50, None]
    path = recorded(tmp_path, *({"time": "2026-01-01", "level": level} for level in levels))
    assert read(path)[1]["failed"].to_list() == [0, 0, 1, 1, 1, 0, 1, 0, 1, 0]
    requested = recorded(
        tmp_path, *({"time": "2026-01-01", "status": status} for status in (200, "404", 503))
    )
    assert read(requested, {"errors": "400"})[1]["failed"].to_list() == [0, 1, 1]
    with pytest.raises(ValueError, match="--set errors must be a status of HTTP"):
        read(requested, {"errors": "many"})


def test_names_of_one_s_own_and_terms_of_another_column(tmp_path: Path) -> None:
    path = recorded(
        tmp_path, {"when": {"at": 1_767_225_600}, "took": 5, "who": "ann"}, {"when": "2026-01-01"}
    )
    rows = read(path, {"time": "when.at, when", "user": "who", "terms": "user"})[1]
    assert rows.select("user", "term", "seconds").rows() == [("ann", "ann", 0.005), (None, None, None)]
    with pytest.raises(ValueError, match="--set terms must be one of host, address"):
        read(path, {"terms": "colour"})


@pytest.mark.slow
def test_every_message_is_in_the_account_and_packed_files_are_read(tmp_path: Path) -> None:
    path = recorded(
        tmp_path, ECS, "oops", NGINX, [1], {"message": "no time"}, {**ECS, "@timestamp": "soon"}, PINO
    )
    packed = tmp_path / "events.json.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    for one in (path, packed):
        account = alerts_of(one, "days")[0]
        assert (account.read, account.counted, account.dead_lettered) == (7, 3, 4)


def test_times_of_any_unit_and_writing() -> None:
    at = "2026-01-01T00:00:00.500000Z"
    forms = ["1767225600.5", "1767225600500", "1767225600500000", "1767225600500000000"]
    rows = pl.DataFrame({"t": [*forms, "2026/01/01 00:00:00.5", "soon", None]})
    wanted = [*[at] * 4, "2026-01-01 00:00:00.5", "soon", None]
    assert rows.select(moment(pl.col("t")))["t"].to_list() == wanted


def test_a_packed_file_that_is_cut_off_or_broken_says_so(tmp_path: Path) -> None:
    whole = gzip.compress(recorded(tmp_path, *({**ECS, "n": n} for n in range(500))).read_bytes())
    cut, broken = tmp_path / "cut.json.gz", tmp_path / "broken.json.gz"
    cut.write_bytes(whole[: len(whole) // 2])
    broken.write_bytes(whole[:20] + b"????" + whole[24:])
    with pytest.raises(RecordingError, match=r"cut\.json\.gz can't be read to its end"):
        read(cut)
    with pytest.raises(ValueError, match=r"broken\.json\.gz can't be replayed: .* incomplete or broken"):
        read(broken)
