"""CloudTrail: files of records, single events, failed calls and failed logins."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from .reading import alerts_of, read


def event(second: int, name: str, **more: Any) -> dict[str, Any]:
    return {
        "eventVersion": "1.09",
        "userIdentity": {"type": "IAMUser", "accountId": "123456789012", "userName": "ann"},
        "eventTime": f"2026-01-01T00:00:{second:02d}Z",
        "eventSource": "signin.amazonaws.com" if name == "ConsoleLogin" else "s3.amazonaws.com",
        "eventName": name,
        "sourceIPAddress": "192.0.2.9",
        "userAgent": "aws-cli/2",
        "requestParameters": {"bucketName": "b"},
        "responseElements": None,
        "recipientAccountId": "123456789012",
        **more,
    }


EVENTS = [
    event(0, "GetObject"),
    event(1, "GetObject", errorCode="AccessDenied", errorMessage="no right"),
    *(event(2 + n, "ConsoleLogin", responseElements={"ConsoleLogin": "Failure"}) for n in range(5)),
    event(8, "ConsoleLogin", responseElements={"ConsoleLogin": "Success"}),
    event(9, "AssumeRole", userIdentity={"type": "AWSService", "invokedBy": "ec2.amazonaws.com"}),
]


@pytest.mark.parametrize("form", ["records", "gzip", "lines", "lines of records"])
def test_events_are_rows_however_they_are_packed(tmp_path: Path, form: str) -> None:
    path = tmp_path / ("trail.json.gz" if form == "gzip" else "trail.json")
    whole = json.dumps({"Records": EVENTS}, indent=None if form == "gzip" else 1)
    if form == "lines of records":
        whole = "\n".join(json.dumps({"Records": part}) for part in (EVENTS[:4], EVENTS[4:]))
    if form == "lines":
        whole = "\n".join(map(json.dumps, EVENTS))
    path.write_bytes(gzip.compress(whole.encode()) if form == "gzip" else whole.encode())
    name, rows, reasons = read(path)
    assert (name, reasons) == ("cloudtrail", [])
    assert set(rows["host"]) == {"123456789012"} and set(rows["agent"]) == {"aws-cli/2"}
    assert rows["user"].to_list() == ["ann"] * 8 + ["ec2.amazonaws.com"]
    assert rows["operation"].to_list()[:3] == ["s3:GetObject", "s3:GetObject", "signin:ConsoleLogin"]
    assert rows["status"].to_list() == ["Success", "AccessDenied", *["Failure"] * 5, "Success", "Success"]
    assert rows["failed"].to_list() == [0, 1, 1, 1, 1, 1, 1, 0, 0]
    assert rows["refused"].to_list() == [0, 0, 1, 1, 1, 1, 1, 0, 0]
    assert alerts_of(path, "days")[0].counted == 9


def test_an_address_whose_logins_fail_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "trail.json"
    path.write_text(json.dumps({"Records": EVENTS}))
    _, alerts, _ = alerts_of(path, "logins")
    assert [(alert.rule, alert.plain_key, alert.value) for alert in alerts] == [
        ("brute force", "192.0.2.9", 5.0)
    ]


def test_an_event_that_can_not_be_read_is_in_the_account(tmp_path: Path) -> None:
    path = tmp_path / "trail.json"
    lines = [json.dumps(EVENTS[0]), "{broken", json.dumps({**EVENTS[0], "eventTime": "now"}), "7"]
    path.write_text("\n".join([*lines, json.dumps(EVENTS[1])]))
    account = alerts_of(path, "days")[0]
    assert (account.read, account.counted, account.dead_lettered) == (5, 2, 3)
