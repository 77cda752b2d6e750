"""PostgreSQL's streaming replication protocol over a psycopg connection: a slot's log, and confirmations.

Source: https://www.postgresql.org/docs/current/protocol-replication.html
"""

from __future__ import annotations

import select
import struct
import time

import psycopg
from psycopg import pq
from psycopg.errors import error_from_result

_STATUS_SECONDS = 10.0
_POSTGRES_EPOCH = 946_684_800


class ReplicationStream:
    """A slot's log from `start` on, after `begin` was called.

    `sent_to` is the position up to which the server has read its log; `read` has returned everything before.
    All methods raise `psycopg.Error`. Not thread-safe.
    """

    def __init__(self, dsn: str, options: str) -> None:
        self._connection = psycopg.connect(
            dsn, replication="database", autocommit=True, options=options, connect_timeout=15
        )
        self._pg = self._connection.pgconn
        self.sent_to = self._delivered = 0
        self.is_awaited = False
        """Whether the server waits for a confirmation of delivery, as it does before it shuts down."""
        self._next_status = 0.0

    def command(self, text: str) -> list[str]:
        """Run a protocol command; return the first row of its answer."""
        result = self._pg.exec_(text.encode())
        if result.status == pq.ExecStatus.TUPLES_OK:
            return [(result.get_value(0, at) or b"").decode() for at in range(result.nfields)]
        if result.status != pq.ExecStatus.COPY_BOTH:
            raise error_from_result(result)
        return []

    def begin(self, slot: str, publication: str, start: str) -> None:
        """Start streaming the log of a publication's tables, in pgoutput's protocol version 1."""
        # A list of names inside a string: both kinds of quotes are doubled.
        names = ('"' + publication.replace('"', '""') + '"').replace("'", "''")
        self.command(
            f"START_REPLICATION SLOT {slot} LOGICAL {start} (proto_version '1', publication_names '{names}')"
        )

    def read(self) -> bytes | None:
        """Return the next message, or None if none has arrived."""
        waited = False
        while True:
            size, data = self._pg.get_copy_data(1)
            if size < 0:
                result = self._pg.get_result()
                if result is not None and result.status == pq.ExecStatus.FATAL_ERROR:
                    raise error_from_result(result)
                raise psycopg.OperationalError("the server ended the replication stream")
            if size == 0 and waited:
                if time.monotonic() >= self._next_status:
                    self._send_status()
                return None
            if size == 0:
                self._pg.consume_input()
                waited = True
                continue
            if data[:1] == b"w":
                return bytes(data[25:])
            if data[:1] == b"k":
                (sent_to,) = struct.unpack_from(">Q", data, 1)
                self.sent_to = max(self.sent_to, sent_to)
                if data[17]:
                    self.is_awaited = True
                    self._send_status()

    def wait(self, seconds: float) -> None:
        """Wait for messages."""
        select.select([self._pg.socket], [], [], seconds)

    def confirm(self, lsn: int) -> None:
        """Confirm that everything before this position was delivered, so the server needn't retain it."""
        self._delivered = max(self._delivered, lsn)
        self._send_status()

    def request_status(self) -> None:
        """Request the server's position."""
        self._send_status(reply=True)

    def close(self) -> None:
        """Release the slot."""
        self._connection.close()

    def _send_status(self, reply: bool = False) -> None:
        now = int((time.time() - _POSTGRES_EPOCH) * 1e6)
        self._pg.put_copy_data(struct.pack(">cQQQqB", b"r", *[self._delivered] * 3, now, reply))
        while self._pg.flush():
            select.select([], [self._pg.socket], [], 1.0)
        self._next_status = time.monotonic() + _STATUS_SECONDS
