"""Messages of pgoutput as its documentation lays them out, whole and cut off."""

from __future__ import annotations

import struct

import pytest

from streamgauge.agents.ingest.sources.pgoutput import (
    UNCHANGED,
    Begin,
    Column,
    Commit,
    PgoutputDecoder,
    ProtocolError,
    RowChange,
    Table,
    Truncate,
)

from ....cases import each

COLUMNS = (Column("id", 23, True), Column("näme", 25, False), Column("big", 25, False))
TABLE = Table(7, "public", "orders", False, COLUMNS)


def table(identity: bytes = b"d") -> bytes:
    columns = b"".join(
        bytes([one.is_key]) + one.name.encode() + b"\0" + struct.pack(">Ii", one.type_oid, -1)
        for one in COLUMNS
    )
    return b"R" + struct.pack(">I", 7) + b"public\0orders\0" + identity + struct.pack(">H", 3) + columns


def row(*values: bytes | object | None) -> bytes:
    parts = [
        b"n"
        if value is None
        else b"u"
        if value is UNCHANGED
        else b"t" + struct.pack(">I", len(value)) + value
        for value in values
    ]
    return struct.pack(">H", len(values)) + b"".join(parts)


def change(kind: bytes, *rows: bytes) -> bytes:
    return kind + struct.pack(">I", 7) + b"".join(rows)


ONE, KEY = (b"1", "ü".encode(), UNCHANGED), (b"1", None, None)
MESSAGES = [
    (b"B" + struct.pack(">QqI", 99, 1_000_000, 5), Begin(99, 946_684_801_000_000, 5)),
    (b"C\0" + struct.pack(">QQq", 99, 120, 0), Commit(120)),
    (change(b"I", b"N", row(*ONE)), RowChange("insert", TABLE, [*ONE])),
    (change(b"U", b"N", row(*ONE)), RowChange("update", TABLE, [*ONE])),
    (change(b"U", b"K", row(*KEY), b"N", row(*ONE)), RowChange("update", TABLE, [*ONE], [*KEY])),
    (change(b"U", b"O", row(*ONE), b"N", row(*ONE)), RowChange("update", TABLE, [*ONE], [*ONE], True)),
    (change(b"D", b"K", row(*KEY)), RowChange("delete", TABLE, None, [*KEY])),
    (change(b"D", b"O", row(*ONE)), RowChange("delete", TABLE, None, [*ONE], True)),
    (b"T" + struct.pack(">IBI", 1, 3, 7), Truncate((TABLE,), True, True)),
    (b"Y" + struct.pack(">I", 9) + b"public\0mood\0", None),
    (b"O" + struct.pack(">Q", 9) + b"origin\0", None),
]


@each(("data", "message"), MESSAGES)
def test_what_messages_say(data: bytes, message: object) -> None:
    decoder = PgoutputDecoder()
    assert decoder.decode(table()) is None
    assert decoder.decode(data) == message


def test_a_table_that_changes_is_described_again() -> None:
    decoder = PgoutputDecoder()
    decoder.decode(table())
    decoder.decode(table(b"f"))
    decoded = decoder.decode(change(b"I", b"N", row(*ONE)))
    assert isinstance(decoded, RowChange) and decoded.table.whole_rows


@each("data", [data for data, message in MESSAGES if message is not None] + [table()])
def test_what_is_cut_off_is_refused(data: bytes) -> None:
    whole = PgoutputDecoder()
    whole.decode(table())
    for size in range(len(data)):
        decoder = PgoutputDecoder()
        decoder.decode(table())
        try:
            cut = decoder.decode(data[:size])
        except ProtocolError:
            continue
        assert cut == whole.decode(data), size  # what is not read was cut off, such as a commit's time


@each(
    "data",
    [
        b"",
        b"S\0\0\0\1",
        b"I" + struct.pack(">I", 8) + b"N" + row(b"1"),
        change(b"I", b"N", row(b"1")),
        change(b"I", b"N", b"\0\3bbb"),
    ],
)
def test_what_is_not_of_the_protocol_is_refused(data: bytes) -> None:
    decoder = PgoutputDecoder()
    decoder.decode(table())
    with pytest.raises(ProtocolError):
        decoder.decode(data)
