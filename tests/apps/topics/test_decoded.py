"""What a message's bytes are decoded as, and how they are shown."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from fastavro import schemaless_writer

from streamgauge.apps.topics.decoded import MessageDecoding, decoded_line
from streamgauge.operators.consumer.log.messages import encode
from streamgauge.operators.table.schema import to_ipc

from ...operators.formats.schema_registry import SmallRegistry, framed
from ...queries.logs import STREAM, deltas, rows

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "user", "type": "string"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}


class Got:
    """A message as the consumer gives it."""

    def __init__(self, value: bytes | None, key: bytes | None = None, headers: Any = None) -> None:
        self._value, self._key, self._headers = value, key, headers

    def value(self) -> bytes | None:
        return self._value

    def key(self) -> bytes | None:
        return self._key

    def headers(self) -> Any:
        return self._headers

    def topic(self) -> str:
        return "posts"

    def partition(self) -> int:
        return 3

    def offset(self) -> int:
        return 17

    def timestamp(self) -> tuple[int, int]:
        return 1, 1_767_225_600_123


def shown(value: bytes | None, decoding: MessageDecoding = MessageDecoding(), **given: Any) -> dict[str, Any]:  # noqa: B008
    result = decoding.of(Got(value, **given))  # type: ignore[arg-type]
    json.dumps(result)
    return result


@pytest.mark.parametrize(
    ("value", "form", "reported"),
    [
        (b'{"user": "\xc3\xa9"}', "json", '{"user": "é"}'),
        (b" [1,\t2,\r\n  1e400 ] ", "json", "[1, 2, 1e400 ]"),
        (b'{"n":0.1000000000000000055,"n":-0}', "json", '{"n":0.1000000000000000055,"n":-0}'),
        (b"7" * 5_000, "json", "7" * 5_000),
        ('"\u2028\ufeff"'.encode("utf-16"), "json", '"\u2028\ufeff"'),
        (b"[NaN]", "text", "[NaN]"),
        (b"a,b\n", "text", "a,b\n"),
        (b"", "text", ""),
        (b"\xff\x00", "bytes", {"bytes": "ff00"}),
        (b"\x01\x02", "bytes", {"bytes": "0102"}),
        (None, "tombstone", None),
        (b"{" * 100_000, "text", "{" * 100_000),
    ],
)
def test_values_are_shown_as_what_they_are(value: bytes | None, form: str, reported: Any) -> None:
    result = shown(value)
    assert (result["form"], result["value"]) == (form, reported)


@pytest.mark.parametrize("text", ["1e400", '{"a": [0.10, 12345678901234567890.5]}', '"\\ud800"', "null"])
def test_a_json_value_is_written_as_it_was_sent(text: str) -> None:
    line = decoded_line(MessageDecoding().of(Got(text.encode(), key=b"k")))  # type: ignore[arg-type]
    assert line.endswith(f'"value": {text}}}') and json.loads(line)["value"] == json.loads(text)


def test_a_json_value_cannot_command_the_terminal() -> None:
    line = decoded_line(MessageDecoding().of(Got('{"\u202e": "\x7f"}'.encode())))  # type: ignore[arg-type]
    assert line.endswith('{"\\u202e": "\\u007f"}}') and json.loads(line)["value"] == {"\u202e": "\x7f"}


def test_the_rest_of_a_message() -> None:
    result = shown(b"1", key=b"ann", headers=[("a", b"x"), ("a", None), ("b", b"\xff")])
    assert result == {
        "topic": "posts",
        "partition": 3,
        "offset": 17,
        "timestamp": "2026-01-01T00:00:00.123Z",
        "key": "ann",
        "headers": [["a", "x"], ["a", None], ["b", {"bytes": "ff"}]],
        "form": "json",
        "value": "1",
    }


def test_tables_of_sketches_and_deltas_are_shown_in_short() -> None:
    (delta, *_) = deltas(rows(seed=1, minutes=2), inputs=1, cut=200)
    (sent,) = encode(delta, "table", 1)
    result = shown(sent.value, headers=list(sent.headers))
    assert result["form"] == "delta" and result["value"] == {
        "input": "posts[0]",
        "from": 0,
        "to": 120,
        "account": delta.account.to_dict(),
        "bytes": len(sent.value or b""),
        "groups": delta.table.num_rows,
    }
    damaged = shown(b"\x01", headers=list(sent.headers))
    assert damaged["form"] == "delta" and "damaged" in damaged["value"]
    part = shown(b"\x01", headers=[*sent.headers, ("part", b"0/2")])
    assert part["value"] == {"part": "0/2", "bytes": 1}
    table = shown(to_ipc(delta.table))
    assert table["form"] == "table" and table["value"]["groups"] == delta.table.num_rows
    assert table["value"]["keys"] == ["lang"] and table["value"]["columns"]["users"] == "distinct"
    assert set(table["value"]["columns"]) == set(STREAM.aggregates)
    assert table["value"]["from"].startswith("2026-01-01T00:00:00")
    plain = pl.DataFrame({"n": [1, 2]}).to_arrow()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, plain.schema) as writer:
        writer.write_table(plain)
    assert shown(sink.getvalue().to_pybytes())["value"] == {"rows": 2, "columns": {"n": "int64"}}
    assert shown(b"\xff\xff\xff\xff\x00")["form"] == "bytes"


def test_avro_by_a_registry_and_by_a_file(tmp_path: Path) -> None:
    out = BytesIO()
    schemaless_writer(out, ORDER, {"user": "ann", "at": 1_767_225_600_123})
    reported = {"user": "ann", "at": "2026-01-01T00:00:00.123000+00:00"}
    (tmp_path / "order.avsc").write_text(json.dumps(ORDER))
    own = MessageDecoding(schema=tmp_path / "order.avsc")
    assert shown(out.getvalue(), own)["value"] == reported
    assert shown(b"\x7f", own)["value"]["hint"].startswith("not Avro of that schema")
    with SmallRegistry().served() as registry:
        number = registry.add("orders-value", ORDER)
        other = registry.add("other-value", "syntax = 'proto3';", kind="PROTOBUF")
        by_id = MessageDecoding(registry=registry.url)
        key = framed(number, out.getvalue())
        result = shown(framed(number, out.getvalue()), by_id, key=key)
        assert (result["form"], result["value"], result["key"]) == ("avro", reported, reported)
        shown(framed(number, out.getvalue()), by_id)
        assert len([path for path in registry.requests if str(number) in path]) == 1
        assert "PROTOBUF" in shown(framed(other, b"\x01"), by_id)["value"]["hint"]
        assert "knows no schema 999" in shown(framed(999, b"\x01"), by_id)["value"]["hint"]
    assert shown(framed(7, b"\x01"))["value"] == {"schema": 7, "bytes": "01", "hint": "name --registry"}
