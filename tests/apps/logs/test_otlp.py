"""OpenTelemetry's logs: batches, values of every type, records that cross a minute."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

from streamgauge.apps.logs.otlp import OtlpLogs
from streamgauge.operators.formats.messages import Messages

from .reading import alerts_of, read

SECOND = 1_000_000_000
NEW_YEAR = 1_767_225_600 * SECOND


def attributes(**values: Any) -> list[dict[str, Any]]:
    return [{"key": key.replace("__", "."), "value": value} for key, value in values.items()]


def record(second: float, body: Any = None, number: Any = 9, **values: Any) -> dict[str, Any]:
    return {
        "timeUnixNano": str(NEW_YEAR + int(second * SECOND)),
        "severityNumber": number,
        "body": {"stringValue": "paid 7 euros"} if body is None else body,
        "attributes": attributes(**values),
    }


def batch(service: str, *records: dict[str, Any]) -> dict[str, Any]:
    resource = {"attributes": attributes(service__name={"stringValue": service})}
    return {"resource": resource, "scopeLogs": [{"scope": {"name": "s"}, "logRecords": list(records)}]}


WEB = record(
    1,
    number=17,
    http__route={"stringValue": "/pay"},
    http__response__status_code={"intValue": "503"},
    client__address={"stringValue": "192.0.2.9"},
    user__name={"stringValue": "ann"},
    http__server__request__duration={"doubleValue": 0.25},
    user_agent__original={"stringValue": "curl/8"},
)
MAP = {"kvlistValue": {"values": [{"key": "a", "value": {"boolValue": True}}]}}


def recorded(tmp_path: Path, *lines: Any) -> Path:
    path = tmp_path / "logs.json"
    path.write_text("\n".join(one if isinstance(one, str) else json.dumps(one) for one in lines) + "\n")
    return path


def test_each_record_of_a_batch_is_a_row(tmp_path: Path) -> None:
    observed = {"observedTimeUnixNano": NEW_YEAR, "body": MAP, "severityText": "WARN"}
    path = recorded(
        tmp_path,
        {"resourceLogs": [batch("shop", WEB, record(2)), {"scopeLogs": []}, batch("bank", observed)]},
    )
    name, rows, _ = read(path)
    assert name == "otlp" and rows["host"].to_list() == ["shop", "shop", "bank"]
    columns = ["address", "user", "operation", "status", "failed", "seconds", "agent", "term"]
    assert rows.select(columns).rows()[:2] == [
        ("192.0.2.9", "ann", "/pay", "503", 1, 0.25, "curl/8", "shop error paid <n> euros"),
        (None, None, None, "info", 0, None, None, "shop info paid <n> euros"),
    ]
    assert rows["message"][2].startswith('{"values":') and rows["status"][2] == "warn"


def test_a_recorded_batch_is_cut_where_a_minute_ends(tmp_path: Path) -> None:
    records = [record(second) for second in (59, 61, 299, 300.5, 5)]
    path = recorded(tmp_path, {"resourceLogs": [batch("shop", *records)]}, {"resourceLogs": []}, "oops")
    account, _, windows = alerts_of(path, "traffic")
    assert (account.read, account.counted, account.filtered, account.dead_lettered) == (6, 4, 1, 1)
    assert windows["records"].to_list() == [4, 1]


def test_batches_that_can_not_be_read_are_refused() -> None:
    decoder = pickle.loads(pickle.dumps(OtlpLogs()))
    good, timeless = {"resourceLogs": [batch("shop", WEB)]}, {"resourceLogs": [batch("shop", {"body": MAP})]}
    values = [
        json.dumps(good).encode(),
        b"oops",
        b'{"resourceLogs": 3}',
        json.dumps(timeless).encode(),
        b"{}",
    ]
    decoded = decoder.decode(Messages.of(values)).checked(len(values), decoder.schema)
    assert decoded.reasons == ["not JSON: byte 0", '"resourceLogs" is 3, not a list']
    assert [None if time is None else time.second for time in decoded.frame["time"]] == [1, None, None]
    assert [None if one is None else len(one) for one in decoded.frame["records"]] == [1, 1, None]
