"""Changes of PostgreSQL tables by logical decoding: each committed row change is a message.

The slot on the server retains the log until it is delivered; the agent's own positions say where to resume.
The server repeats whole transactions, so a position within one is the number of its changes that were
delivered.
"""

from __future__ import annotations

import json
import logging
import re
import time
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from psycopg import conninfo, errors

from ..batch import Batch, DeadLine, IngestError, Positions
from ..component import Place
from .pgoutput import (
    UNCHANGED,
    Begin,
    Commit,
    PgoutputDecoder,
    ProtocolError,
    RowChange,
    Table,
    Truncate,
    Values,
)
from .postgres_stream import ReplicationStream
from .postgres_values import SESSION, TypeInfo, ValueTypes, json_text

log = logging.getLogger("streamgauge.ingest")

_PART = "log"
_MOST, _MOST_BYTES = 5_000, 4 * 1024 * 1024
"""The most messages and bytes in a batch."""
_IDLE_SECONDS = 10.0
"""How often a position is stored while only changes outside the publication fill the log."""
_LAG_SECONDS = 10.0
_REQUEST_SECONDS = 0.2
_LOG_END = "CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_flush_lsn() END"
_FIRST_SECONDS, _LONGEST_SECONDS = 0.5, 30.0
_LATER = (
    errors.ObjectInUse,
    errors.AdminShutdown,
    errors.CannotConnectNow,
    errors.TooManyConnections,
    errors.ConfigurationLimitExceeded,
)
"""Transient errors: another connection still uses the slot, or the server is starting, ending or full."""


@dataclass(frozen=True, kw_only=True)
class Postgres:
    """Changes of the tables of a `publication`, from the server and database that `dsn` names.

    `dsn` is libpq's, ``host=db dbname=shop user=agent``; put a password in a passfile. The server needs
    ``wal_level = logical``, and the user REPLICATION. `slot` is created if missing, by default with a name
    made from the agent's and the source's names, and delivers changes from then on; existing rows are not
    sent.
    """

    dsn: str
    publication: str = "streamgauge"
    slot: str = ""

    def __post_init__(self) -> None:
        try:
            conninfo.conninfo_to_dict(self.dsn)
        except psycopg.ProgrammingError as error:
            raise ValueError(
                f"dsn must be a libpq connection string, as in host=db dbname=shop: {error}".strip()
            ) from None
        if not re.fullmatch(r"[a-z0-9_]{0,63}", self.slot):
            raise ValueError(f"slot may contain only letters a to z, digits and _, got {self.slot!r}")

    def open(self, place: Place, positions: Positions) -> PostgresSource:
        """See `SourceSettings`."""
        readable = re.sub(r"[^a-z0-9_]", "_", f"streamgauge_{place.owner}".lower())[:54]
        slot = self.slot or f"{readable}_{zlib.crc32(place.owner.encode()):08x}"
        return PostgresSource(replace(self, slot=slot), positions.get(_PART), place.once)


@dataclass(frozen=True, slots=True)
class WalPosition:
    """A position in a log: all transactions committed before `lsn`, and the first `changes` changes of the
    one
    committed at `transaction`.
    """

    system: str
    lsn: int
    transaction: int = 0
    changes: int = 0

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> WalPosition:
        """Parse the result of `describe`."""
        return cls(
            given["system"],
            parse_lsn(given["lsn"]),
            parse_lsn(given["transaction"]) if "transaction" in given else 0,
            given.get("changes", 0),
        )

    def describe(self) -> dict[str, Any]:
        """Convert to plain values for JSON."""
        plain: dict[str, Any] = {"system": self.system, "lsn": format_lsn(self.lsn)}
        if self.transaction:
            plain |= {"transaction": format_lsn(self.transaction), "changes": self.changes}
        return plain


@dataclass(slots=True)
class _Rows:
    """The contents of a batch that is being built."""

    values: list[bytes] = field(default_factory=list)
    keys: list[bytes | None] = field(default_factory=list)
    dead: list[DeadLine] = field(default_factory=list)


class PostgresSource:
    """A `Source` of row changes. Raises `IngestError` for a server or a slot that can't deliver them."""

    waited_for = finite = False

    def __init__(self, settings: Postgres, position: Mapping[str, Any] | None, once: bool) -> None:
        self._settings = settings
        self._position = WalPosition.parse(position) if position else None
        self._once = once
        self._stream: ReplicationStream | None = None
        self._decoder, self._change = PgoutputDecoder(), 0
        self._begin: Begin | None = None
        self._types = ValueTypes(self._look_up_types)
        self._keys: dict[int, tuple[str, ...]] = {}
        self._pause, self._next_try, self._next_idle, self._next_look = _FIRST_SECONDS, 0.0, 0.0, 0.0
        # The end of the log at the start, up to which an agent that runs once reads.
        self._end = 0
        self.lag_bytes = 0
        """Bytes of its log that the server retains because they were not delivered; some seconds old."""
        self._next_request, self._connected = 0.0, False
        # The first position is stored before any change, so that a dropped slot is noticed.
        self._is_new = position is None
        try:
            self._connect()
        except psycopg.OperationalError as error:
            self._disconnected(error)

    @property
    def ended(self) -> bool:
        """See `Source`."""
        stream = self._stream
        if stream is None or self._is_new or self._begin is not None:
            return False
        return stream.sent_to >= self._end

    def read(self, seconds: float) -> Batch | None:
        """See `Source`."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                if self._stream is None:
                    self._connect_again(deadline)
                if self._stream is not None:
                    self._look_at_lag()
                    if self._is_new:
                        self._is_new = False
                        return self._batch(_Rows())
                    if (batch := self._read(self._stream, deadline)) is not None:
                        return batch
            except psycopg.OperationalError as error:
                self._disconnected(error)
            except psycopg.Error as error:
                raise self._refused(error) from None
            if time.monotonic() >= deadline or (self._once and self.ended):
                return None

    def close(self) -> None:
        """See `Source`."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    # The server

    def _connect(self) -> None:
        """Begin after the position read. Raises `psycopg.OperationalError` for transient errors."""
        try:
            self._start()
        except _LATER as error:
            raise psycopg.OperationalError(str(error)) from None
        except psycopg.Error as error:
            if self._connected and error.sqlstate is None:
                raise  # it existed before
            raise self._refused(error) from None
        self._pause, self._connected = _FIRST_SECONDS, True

    def _refused(self, error: psycopg.Error) -> IngestError:
        return IngestError(
            f"PostgreSQL can't stream its log through the slot {self._settings.slot}: {str(error).strip()}"
        )

    def _start(self) -> None:
        settings = self._settings
        stream = ReplicationStream(
            settings.dsn, " ".join(f"-c {name}={value}" for name, value in SESSION.items())
        )
        try:
            self._check_publication()
            position = self._slot_position(stream, stream.command("IDENTIFY_SYSTEM")[0])
            if self._once and not self._end:
                self._end = parse_lsn(self._query(f"SELECT ({_LOG_END})::text")[0][0])
            stream.begin(settings.slot, settings.publication, format_lsn(position.lsn))
        except BaseException:
            stream.close()
            raise
        self._position, self._stream = position, stream
        self._decoder, self._begin, self._change = PgoutputDecoder(), None, 0
        self._keys.clear()

    def _slot_position(self, stream: ReplicationStream, system: str) -> WalPosition:
        """Return where to begin: after the position read, or without one at the slot's position."""
        settings, known = self._settings, self._position
        if known is not None and known.system != system:
            raise IngestError(
                f"this is not the server read before (its system was {known.system}, and now it is "
                f"{system}): to read this one from now on, give this source another name"
            )
        rows = self._query(
            "SELECT plugin, database, current_database(), confirmed_flush_lsn::text "
            "FROM pg_replication_slots WHERE slot_name = %s",
            settings.slot,
        )
        if not rows:
            if known is not None:
                raise IngestError(
                    f"the slot {settings.slot!r} no longer exists on the server, so changes since "
                    f"{format_lsn(known.lsn)} can't be read any more. To continue with changes from now on, "
                    "give this source another name"
                )
            made = stream.command(f"CREATE_REPLICATION_SLOT {settings.slot} LOGICAL pgoutput")
            return WalPosition(system, parse_lsn(made[1]))
        [(plugin, database, current, confirmed)] = rows
        if plugin != "pgoutput" or database != current:
            raise IngestError(
                f"the slot {settings.slot!r} uses the plugin {plugin} in the database {database!r}; it must "
                f"use pgoutput in {current!r}: drop it, or name another slot"
            )
        reached = parse_lsn(confirmed)
        if known is None:
            return WalPosition(system, reached)
        if reached > known.lsn:
            raise IngestError(
                f"the slot {settings.slot!r} is at {confirmed}, but this source has delivered only up to "
                f"{format_lsn(known.lsn)}: another program has read the slot, and the changes in between "
                "can't be read any more. To continue without them, give this source another name"
            )
        return known

    def _check_publication(self) -> None:
        name = self._settings.publication
        if not self._query("SELECT 1 FROM pg_publication WHERE pubname = %s", name):
            raise IngestError(
                f'there is no publication {name!r}; create it: CREATE PUBLICATION "{name}" FOR TABLE …'
            )

    def _query(self, text: str, *values: Any) -> list[tuple[Any, ...]]:
        """Query the server over another connection, because this one streams the log."""
        with psycopg.connect(self._settings.dsn, connect_timeout=15) as connection:
            return connection.execute(text, values).fetchall()

    def _look_up_types(self, oids: Iterable[int]) -> Mapping[int, TypeInfo]:
        rows = self._query(
            "SELECT oid, typname, typbasetype, CASE typcategory WHEN 'A' THEN typelem ELSE 0 END "
            "FROM pg_type WHERE oid = ANY(%s::oid[])",
            list(oids),
        )
        return {oid: TypeInfo(name, base, element) for oid, name, base, element in rows}

    def _look_at_lag(self) -> None:
        """Query from time to time how much of its log the server retains for this slot."""
        if time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + _LAG_SECONDS
        with suppress(psycopg.Error):
            rows = self._query(
                f"SELECT pg_wal_lsn_diff({_LOG_END}, confirmed_flush_lsn)::int8, wal_status "
                "FROM pg_replication_slots WHERE slot_name = %s",
                self._settings.slot,
            )
            for lag, status in rows:
                self.lag_bytes = lag
                if status in ("unreserved", "lost"):
                    log.warning(
                        "PostgreSQL has removed, or may soon remove, log that the slot %s still needs "
                        "(status: %s): %d bytes are unread; raise max_slot_wal_keep_size",
                        *(self._settings.slot, status, lag),
                    )

    def _disconnected(self, error: Exception) -> None:
        log.warning(
            "PostgreSQL (%s): %s; reconnecting in %.1f s",
            self._settings.slot,
            str(error).strip(),
            self._pause,
        )
        self.close()
        self._next_try = time.monotonic() + self._pause
        self._pause = min(2 * self._pause, _LONGEST_SECONDS)

    def _connect_again(self, deadline: float) -> None:
        wait = self._next_try - time.monotonic()
        time.sleep(max(min(wait, deadline - time.monotonic()), 0.0))
        if time.monotonic() >= self._next_try:
            self._connect()

    # The log

    def _read(self, stream: ReplicationStream, deadline: float) -> Batch | None:
        rows, moved, size = _Rows(), False, 0
        while len(rows.values) + len(rows.dead) < _MOST and size < _MOST_BYTES:
            try:
                payload = stream.read()
                if payload is not None:
                    size += len(payload)
                    moved |= self._take(payload, rows)
            except psycopg.OperationalError as error:
                # The position is already after everything read.
                self._disconnected(error)
                break
            except ProtocolError as error:
                raise IngestError(f"PostgreSQL ({self._settings.slot}): {error}") from None
            if payload is not None:
                continue
            if moved:
                break
            if (idle := self._idle(stream)) is not None:
                return idle
            self._request_end(stream)
            left = deadline - time.monotonic()
            if left <= 0 or (self._once and self.ended):
                return None
            stream.wait(min(left, _REQUEST_SECONDS) if self._once else left)
        return self._batch(rows) if moved else None

    def _batch(self, rows: _Rows) -> Batch:
        assert self._position is not None
        position = self._position

        def acknowledged() -> None:
            if self._stream is not None:
                # The server repeats what isn't confirmed, and the position filters it out.
                with suppress(psycopg.Error):
                    self._stream.confirm(position.lsn)

        return Batch.of(
            rows.values,
            stream=self._settings.slot,
            keys=rows.keys,
            dead=rows.dead,
            positions={_PART: position.describe()},
            acknowledged=acknowledged,
        )

    def _idle(self, stream: ReplicationStream) -> Batch | None:
        """Store a position from time to time, so that the server needn't retain a log of unrelated
        changes."""
        assert self._position is not None
        if self._begin is not None or stream.sent_to <= self._position.lsn:
            return None
        if self._once or (time.monotonic() < self._next_idle and not stream.is_awaited):
            return None
        self._next_idle, stream.is_awaited = time.monotonic() + _IDLE_SECONDS, False
        self._position = replace(self._position, lsn=stream.sent_to, transaction=0, changes=0)
        return self._batch(_Rows())

    def _request_end(self, stream: ReplicationStream) -> None:
        """Request the server's position, for an agent that runs once."""
        if self._once and time.monotonic() >= self._next_request:
            self._next_request = time.monotonic() + _REQUEST_SECONDS
            stream.request_status()

    def _take(self, payload: bytes, rows: _Rows) -> bool:
        """Add a message's changes, unless they were delivered; return whether this moves the position."""
        assert self._position is not None
        message = self._decoder.decode(payload)
        if isinstance(message, Begin):
            self._begin, self._change = message, 0
        elif isinstance(message, Commit):
            self._begin = None
            if message.end_lsn > self._position.lsn:
                self._position = replace(self._position, lsn=message.end_lsn, transaction=0, changes=0)
                return True
        elif message is not None:
            return self._add(message, payload, rows)
        return False

    def _add(self, message: RowChange | Truncate, payload: bytes, rows: _Rows) -> bool:
        assert self._position is not None
        begin, position = self._begin, self._position
        if begin is None:
            raise ProtocolError("pgoutput sends a change outside of a transaction")
        self._change += 1
        delivered = position.changes if position.transaction == begin.lsn else 0
        if begin.lsn < position.lsn or self._change <= delivered:
            return False
        if isinstance(message, RowChange):
            try:
                value, key = self._row_message(message, begin)
                rows.values.append(value)
                rows.keys.append(key)
            except UnicodeDecodeError:
                rows.dead.append(DeadLine("text that is not UTF-8", payload))
        else:
            options = {"cascade": message.cascade, "restart_identity": message.restart_identity}
            parts = [f'"{name}":{json.dumps(given)}' for name, given in options.items()]
            rows.values += [self._message("truncate", table, begin, parts) for table in message.tables]
            rows.keys += [None] * len(message.tables)
        self._position = replace(position, transaction=begin.lsn, changes=self._change)
        return True

    def _row_message(self, change: RowChange, begin: Begin) -> tuple[bytes, bytes | None]:
        table, new, old = change.table, change.new, change.old
        if new is not None and change.old_is_whole and old is not None:
            new = [before if value is UNCHANGED else value for value, before in zip(new, old)]
        parts = []
        if new is not None:
            parts.append(f'"row":{self._object(table, new)}')
            missing = [column.name for column, value in zip(table.columns, new) if value is UNCHANGED]
            if missing:
                parts.append(f'"unchanged":{json.dumps(missing, ensure_ascii=False)}')
        if old is not None:
            names = (
                None if change.old_is_whole else {column.name for column in table.columns if column.is_key}
            )
            parts.append(f'"old":{self._object(table, old, names)}')
        key = self._key(table, new if new is not None else old)
        return self._message(change.operation, table, begin, parts), key

    def _message(self, operation: str, table: Table, begin: Begin, parts: list[str]) -> bytes:
        when = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=begin.microseconds)
        head = (
            f'{{"op":"{operation}","schema":{json_text(table.schema)},"table":{json_text(table.name)},'
            f'"lsn":"{format_lsn(begin.lsn)}","xid":{begin.xid},"change":{self._change},'
            f'"committed_at":"{when.strftime("%Y-%m-%dT%H:%M:%S.%f")}Z"'
        )
        return ",".join([head, *parts]).encode() + b"}"

    def _object(self, table: Table, values: Values, names: set[str] | None = None) -> str:
        pairs = [
            f"{json_text(column.name)}:{self._value(value, column.type_oid)}"
            for column, value in zip(table.columns, values)
            if value is not UNCHANGED and (names is None or column.name in names)
        ]
        return f"{{{','.join(pairs)}}}"

    def _value(self, value: bytes | None, type_oid: int) -> str:
        return "null" if value is None else self._types.to_json(value.decode(), type_oid)

    def _key(self, table: Table, values: Values | None) -> bytes | None:
        """Return what identifies a row, as JSON; None for a table without an identity."""
        if table.oid not in self._keys:
            self._keys[table.oid] = self._key_columns(table)
        names = set(self._keys[table.oid])
        if not names or values is None:
            return None
        return self._object(table, values, names).encode()

    def _key_columns(self, table: Table) -> tuple[str, ...]:
        if not table.whole_rows:
            return tuple(column.name for column in table.columns if column.is_key)
        rows = self._query(
            "SELECT attname FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY(indkey) "
            "WHERE indrelid = %s AND indisprimary",
            table.oid,
        )
        return tuple(name for (name,) in rows)


def format_lsn(lsn: int) -> str:
    """Format a position in the log as PostgreSQL does.

    >>> format_lsn(0x1_0000_00AB)
    '1/AB'
    """
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def parse_lsn(text: str) -> int:
    """Parse a position in the log.

    >>> parse_lsn("1/AB") == 0x1_0000_00AB
    True
    """
    high, _, low = text.partition("/")
    return int(high, 16) << 32 | int(low, 16)
