"""Decode the output of PostgreSQL's plugin pgoutput: transactions, tables and changed rows.

Source: https://www.postgresql.org/docs/current/protocol-logicalrep-message-formats.html, protocol version 1.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ....sketches.core.errors import StreamgaugeError

UNCHANGED = object()
"""Stands for a large value that an update didn't change, which the log doesn't contain."""

Values = Sequence[Any]
"""The values of a row's columns: bytes of text, None for NULL, or `UNCHANGED`."""


class ProtocolError(StreamgaugeError, ValueError):
    """Bytes that are not pgoutput's format."""


@dataclass(frozen=True, slots=True)
class Column:
    """A table's column; `is_key` says that it is part of a row's identity."""

    name: str
    type_oid: int
    is_key: bool


@dataclass(frozen=True, slots=True)
class Table:
    """A table as of when its rows were written; `whole_rows` says that all columns identify a row (REPLICA
    IDENTITY FULL).
    """

    oid: int
    schema: str
    name: str
    whole_rows: bool
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Begin:
    """The beginning of a transaction that was committed at `lsn`, at `microseconds` since 1970."""

    lsn: int
    microseconds: int
    xid: int


@dataclass(frozen=True, slots=True)
class Commit:
    """The end of a transaction's changes; the log continues at `end_lsn`."""

    end_lsn: int


@dataclass(frozen=True, slots=True)
class RowChange:
    """A row that was inserted, updated or deleted.

    `old` is the old row in an update or a delete: nothing, only its key, or all of it (`old_is_whole`).
    """

    operation: Literal["insert", "update", "delete"]
    table: Table
    new: Values | None = None
    old: Values | None = None
    old_is_whole: bool = False


@dataclass(frozen=True, slots=True)
class Truncate:
    """Tables that were truncated together."""

    tables: tuple[Table, ...]
    cascade: bool
    restart_identity: bool


Message = Begin | Commit | RowChange | Truncate
_POSTGRES_EPOCH_US = 946_684_800_000_000
_OPERATIONS: dict[str, Literal["insert", "update", "delete"]] = {"I": "insert", "U": "update", "D": "delete"}


class PgoutputDecoder:
    """Decodes a connection's messages in order; the server describes each table before its first row."""

    def __init__(self) -> None:
        self._tables: dict[int, Table] = {}

    def decode(self, data: bytes) -> Message | None:
        """Decode a message; None for one that changes nothing. Raises `ProtocolError`.

        >>> commit = "43 00 0000000000000010 0000000000000020 0000000000000000"
        >>> PgoutputDecoder().decode(bytes.fromhex(commit))
        Commit(end_lsn=32)
        """
        try:
            return self._decode(data)
        except (struct.error, IndexError, UnicodeDecodeError) as error:
            raise ProtocolError(f"a pgoutput message can't be decoded ({error}): {data[:40]!r}") from None

    def _decode(self, data: bytes) -> Message | None:
        kind = data[:1].decode()
        if kind == "B":
            lsn, microseconds, xid = struct.unpack_from(">QqI", data, 1)
            return Begin(lsn, microseconds + _POSTGRES_EPOCH_US, xid)
        if kind == "C":
            return Commit(*struct.unpack_from(">Q", data, 10))
        if kind == "R":
            self._add_table(data)
            return None
        if kind in _OPERATIONS:
            return self._change(_OPERATIONS[kind], data)
        if kind == "T":
            count, options = struct.unpack_from(">IB", data, 1)
            tables = tuple(self._table(oid) for oid in struct.unpack_from(f">{count}I", data, 6))
            return Truncate(tables, bool(options & 1), bool(options & 2))
        if kind in "YOM" and kind:  # a type, an origin, a message of an application
            return None
        raise ProtocolError(f"pgoutput sent {data[:40]!r}, which isn't a message of protocol version 1")

    def _table(self, oid: int) -> Table:
        if oid not in self._tables:
            raise ProtocolError(f"pgoutput sends a row of the table {oid}, which it has not described")
        return self._tables[oid]

    def _add_table(self, data: bytes) -> None:
        (oid,) = struct.unpack_from(">I", data, 1)
        schema, at = _text(data, 5)
        name, at = _text(data, at)
        identity, count = struct.unpack_from(">cH", data, at)
        at += 3
        columns = []
        for _ in range(count):
            flags = data[at]
            column, at = _text(data, at + 1)
            columns.append(Column(column, struct.unpack_from(">I", data, at)[0], bool(flags & 1)))
            at += 8
        self._tables[oid] = Table(oid, schema or "pg_catalog", name, identity == b"f", tuple(columns))

    def _change(self, operation: Literal["insert", "update", "delete"], data: bytes) -> RowChange:
        table = self._table(struct.unpack_from(">I", data, 1)[0])
        rows: dict[str, Values] = {}
        at = 5
        while at < len(data):
            kind = data[at : at + 1].decode()
            rows[kind], at = _row(data, at + 1)
            if len(rows[kind]) != len(table.columns):
                raise ProtocolError(
                    f"a row of {table.schema}.{table.name} has {len(rows[kind])} values for "
                    f"{len(table.columns)} columns"
                )
        if ("N" in rows) == (operation == "delete") or (operation == "delete" and len(rows) != 1):
            raise ProtocolError(f"a pgoutput message lacks a row version, or has one too many: {data[:40]!r}")
        return RowChange(operation, table, rows.get("N"), rows.get("O", rows.get("K")), "O" in rows)


def _text(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(b"\0", at) if b"\0" in data[at:] else len(data) + 1
    if end > len(data):
        raise IndexError("a string is cut off")
    return data[at:end].decode(), end + 1


def _row(data: bytes, at: int) -> tuple[Values, int]:
    (count,) = struct.unpack_from(">H", data, at)
    at += 2
    values: list[Any] = []
    for _ in range(count):
        kind, at = data[at], at + 1
        if kind == 0x6E:  # n
            values.append(None)
        elif kind == 0x75:  # u
            values.append(UNCHANGED)
        elif kind == 0x74:  # t
            (size,) = struct.unpack_from(">I", data, at)
            value = data[at + 4 : at + 4 + size]
            if len(value) < size:
                raise IndexError("a value is cut off")
            values.append(value)
            at += 4 + size
        else:
            raise ProtocolError(f"pgoutput sends a value of the unknown kind {chr(kind)!r}")
    return values, at
