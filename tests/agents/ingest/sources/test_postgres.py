"""Changes of a real PostgreSQL's tables, each once, whatever is restarted."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("psycopg")

from streamgauge.agents.ingest.batch import IngestError
from streamgauge.agents.ingest.component import Place
from streamgauge.agents.ingest.sources import postgres
from streamgauge.agents.ingest.sources.postgres import Postgres, PostgresSource

from ....cases import each, seeds
from ....waiting import until
from ..agents import agent, fresh, messages
from .postgres_server import PostgresServer, find_programs

pytestmark = [pytest.mark.apart, pytest.mark.skipif(find_programs() is None, reason="no PostgreSQL here")]


@pytest.fixture(scope="module")
def running() -> Iterator[PostgresServer]:
    server = PostgresServer()
    yield server
    server.close()


@pytest.fixture
def server(running: PostgresServer) -> Iterator[PostgresServer]:
    """With a publication of all tables, and none of them."""
    running.execute("CREATE PUBLICATION streamgauge FOR ALL TABLES")
    yield running
    running.execute(
        "DROP PUBLICATION IF EXISTS streamgauge",
        "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots",
        "DROP SCHEMA public CASCADE",
        "CREATE SCHEMA public",
    )
    left(running)
    running.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")


def left(server: PostgresServer) -> None:
    """Wait until the server knows that nobody has a slot any more."""
    until(lambda: not server.execute("SELECT 1 FROM pg_replication_slots WHERE active"))


class Reading:
    """A source by itself; what is committed of it survives `restart`."""

    def __init__(self, server: PostgresServer, folder: Path, **settings: Any) -> None:
        self.settings = Postgres(dsn=server.dsn, **settings)
        self.place, self.positions = Place("agent", "shop", folder, once=True), dict[str, Any]()
        self.keys: list[bytes | None] = []
        self.raw: list[bytes] = []
        self.source = self._open()

    def _open(self) -> PostgresSource:
        return self.settings.open(self.place, json.loads(json.dumps(self.positions)))

    def restart(self) -> None:
        self.source.close()
        self.source = self._open()

    def read(self, commit: bool = True) -> list[dict[str, Any]]:
        """What was changed by now, to its end."""
        self.source._end = postgres.parse_lsn(self.source._query(f"SELECT ({postgres._LOG_END})::text")[0][0])
        changes: list[dict[str, Any]] = []
        while not self.source.ended:
            if (batch := self.source.read(1)) is not None:
                changes += map(json.loads, batch.values())
                self.keys, self.raw = [*self.keys, *(batch.keys or ())], [*self.raw, *batch.values()]
                if commit:
                    self.positions.update(batch.positions)
                    batch.acknowledged()
        return changes


def shown(change: dict[str, Any]) -> tuple[Any, ...]:
    """A change without what is another in each run."""
    return tuple(change.get(name) for name in ("op", "table", "row", "unchanged", "old"))


def test_each_kind_of_change(server: PostgresServer, tmp_path: Path) -> None:
    server.execute(
        "CREATE TABLE orders (id int PRIMARY KEY, name text, note text)",
        "ALTER TABLE orders ALTER note SET STORAGE EXTERNAL",
        "INSERT INTO orders VALUES (0, 'before the slot', NULL)",
    )
    reading = Reading(server, tmp_path)
    long = "x" * 20_000
    server.execute(
        f"INSERT INTO orders VALUES (1, 'Ü\"', '{long}')",
        "UPDATE orders SET name = NULL WHERE id = 1",
        "UPDATE orders SET id = 2 WHERE id = 1",
        "DELETE FROM orders WHERE id = 2",
        "TRUNCATE orders RESTART IDENTITY CASCADE",
    )
    changes = reading.read()
    assert [shown(one) for one in changes] == [
        ("insert", "orders", {"id": 1, "name": 'Ü"', "note": long}, None, None),
        ("update", "orders", {"id": 1, "name": None}, ["note"], None),
        ("update", "orders", {"id": 2, "name": None}, ["note"], {"id": 1}),
        ("delete", "orders", None, None, {"id": 2}),
        ("truncate", "orders", None, None, None),
    ]
    assert reading.keys == [b'{"id":1}', b'{"id":1}', b'{"id":2}', b'{"id":2}', None]
    first, last = changes[0], changes[-1]
    assert (first["schema"], first["change"], last["cascade"], last["restart_identity"]) == (
        *("public", 1, True, True),
    )
    assert first["xid"] < last["xid"] and first["committed_at"] <= last["committed_at"]
    reading.source.close()


def test_tables_with_another_identity(server: PostgresServer, tmp_path: Path) -> None:
    server.execute(
        "CREATE TABLE whole (a int, b int, note text, PRIMARY KEY (b, a))",
        "ALTER TABLE whole ALTER note SET STORAGE EXTERNAL",
        "ALTER TABLE whole REPLICA IDENTITY FULL",
        "CREATE TABLE keyless (a int)",
        "ALTER TABLE keyless REPLICA IDENTITY FULL",
    )
    reading = Reading(server, tmp_path)
    long = "x" * 20_000
    server.execute(
        f"INSERT INTO whole VALUES (1, 2, '{long}')",
        "UPDATE whole SET a = 3",
        "INSERT INTO keyless VALUES (1)",
        "DELETE FROM keyless",
    )
    assert [shown(one) for one in reading.read()] == [
        ("insert", "whole", {"a": 1, "b": 2, "note": long}, None, None),
        ("update", "whole", {"a": 3, "b": 2, "note": long}, None, {"a": 1, "b": 2, "note": long}),
        ("insert", "keyless", {"a": 1}, None, None),
        ("delete", "keyless", None, None, {"a": 1}),
    ]
    assert reading.keys == [b'{"a":1,"b":2}', b'{"a":3,"b":2}', None, None]
    reading.source.close()


TYPES = [
    ("smallint", "-7", -7),
    ("bigint", "9223372036854775807", 9223372036854775807),
    ("float8", "'NaN'", "NaN"),
    ("float8", "0.1::float8 + 0.2", 0.30000000000000004),
    ("float4", "0.1", 0.1),
    ("boolean", "true", True),
    ("timestamptz", "'2026-01-02 03:04:05.6+02'", "2026-01-02T01:04:05.6Z"),
    ("timestamp", "'2026-01-02 03:04:05'", "2026-01-02T03:04:05"),
    ("timestamp", "'-infinity'", "-infinity"),
    ("date", "'2026-01-02'", "2026-01-02"),
    ("time", "'03:04:05.6'", "03:04:05.6"),
    ("interval", "'1 year 2 days 3.5 s'", "P1Y2DT3.5S"),
    ("bytea", "'\\x00ff'", "\\x00ff"),
    ("uuid", "'d4019250-81ba-492b-b64d-17bae29c727b'", "d4019250-81ba-492b-b64d-17bae29c727b"),
    ("json", """'{"a" : [1, null]}'""", {"a": [1, None]}),
    ("jsonb", """'{"a": 1}'""", {"a": 1}),
    ("int[]", "'{{1,NULL},{3,4}}'", [[1, None], [3, 4]]),
    ("text[]", """array['a"b', NULL, '']""", ['a"b', None, ""]),
    ("mood", "'sad'", "sad"),
    ("mood[]", "'{sad,happy}'", ["sad", "happy"]),
    ("positive", "5", 5),
    ("positive[]", "'{5}'", [5]),
    ("pair", "'(1,x)'", "(1,x)"),
    ("int4range", "'[1,5)'", "[1,5)"),
    ("inet", "'::1'", "::1"),
    ("money", "3.5", "$3.50"),
    ("numeric", "'Infinity'", "Infinity"),
]


def test_values_of_each_type(server: PostgresServer, tmp_path: Path) -> None:
    columns = ", ".join(f"c{at} {name}" for at, (name, _, _) in enumerate(TYPES))
    server.execute(
        "CREATE TYPE mood AS ENUM ('sad', 'happy')",
        "CREATE DOMAIN positive AS int CHECK (VALUE > 0)",
        "CREATE TYPE pair AS (a int, b text)",
        f"CREATE TABLE typed ({columns}, exact numeric)",
        "ALTER DATABASE postgres SET datestyle = 'SQL, DMY'",
        "ALTER DATABASE postgres SET timezone = 'Asia/Tokyo'",
    )
    reading = Reading(server, tmp_path)
    exact = "12345678901234567890.10000000000000000000000001"
    server.execute(f"INSERT INTO typed VALUES ({', '.join(text for _, text, _ in TYPES)}, {exact})")
    server.execute("ALTER DATABASE postgres RESET ALL")
    [change] = reading.read()
    change["row"].pop("exact")
    assert change["row"] == {f"c{at}": value for at, (_, _, value) in enumerate(TYPES)}
    assert f'"exact":{exact}'.encode() in reading.raw[0]
    reading.source.close()


def test_a_table_may_change(server: PostgresServer, tmp_path: Path) -> None:
    server.execute("CREATE TABLE t (id int PRIMARY KEY, a int)")
    reading = Reading(server, tmp_path)
    server.execute(
        "INSERT INTO t VALUES (1, 2)",
        "ALTER TABLE t DROP a, ADD b text DEFAULT 'x'",
        "INSERT INTO t VALUES (2)",
        "ALTER TABLE t RENAME TO u",
        "INSERT INTO u VALUES (3)",
    )
    assert [shown(one)[1:3] for one in reading.read()] == [
        ("t", {"id": 1, "a": 2}),
        ("t", {"id": 2, "b": "x"}),
        ("u", {"id": 3, "b": "x"}),
    ]
    reading.source.close()


def test_a_transaction_is_not_there_before_its_commit(server: PostgresServer, tmp_path: Path) -> None:
    import psycopg

    server.execute("CREATE TABLE t (id int PRIMARY KEY)")
    reading = Reading(server, tmp_path)
    with psycopg.connect(server.dsn) as first, psycopg.connect(server.dsn) as second:
        first.execute("INSERT INTO t VALUES (1)")
        second.execute("INSERT INTO t VALUES (2)")
        first.execute("SAVEPOINT s")
        first.execute("INSERT INTO t VALUES (3)")
        first.execute("ROLLBACK TO s")
        first.execute("INSERT INTO t VALUES (4)")
        assert reading.read() == []
        second.commit()
        first.commit()
    server.execute("BEGIN; INSERT INTO t VALUES (5); ROLLBACK")
    changes = reading.read()
    assert [one["row"]["id"] for one in changes] == [2, 1, 4]
    assert [one["change"] for one in changes] == [1, 1, 2]
    assert changes[1]["xid"] == changes[2]["xid"] != changes[0]["xid"]
    reading.source.close()


@pytest.mark.parametrize("seed", range(3))
def test_each_change_once_whatever_is_restarted(
    server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Batches end within transactions; some are lost before they are committed, as by `kill -9`."""
    monkeypatch.setattr(postgres, "_MOST", 7)
    monkeypatch.setattr(postgres, "_FIRST_SECONDS", 0.01)
    chance = random.Random(seed)
    server.execute("CREATE TABLE t (id serial PRIMARY KEY, n int)")
    reading, written, got = Reading(server, tmp_path), 0, list[int]()
    for _ in range(12):
        count = chance.choice((1, 5, 30))
        server.execute(f"INSERT INTO t (n) SELECT generate_series({written}, {written + count - 1})")
        written += count
        for _ in range(chance.randint(0, 6)):
            batch = reading.source.read(0.1)
            if batch is None or chance.random() < 0.2:
                reading.restart()
            else:
                got += [json.loads(one)["row"]["n"] for one in batch.values()]
                reading.positions.update(batch.positions)
                if chance.random() < 0.7:
                    batch.acknowledged()
        if chance.random() < 0.3:
            server.stop()
            server.start()
        elif chance.random() < 0.3:
            server.execute("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots")
    got += [one["row"]["n"] for one in reading.read()]
    assert got == list(range(written))
    reading.source.close()


def test_the_server_keeps_no_log_of_what_was_delivered(
    server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "_IDLE_SECONDS", 0.0)
    monkeypatch.setattr(postgres, "_LAG_SECONDS", 0.0)
    server.execute("CREATE TABLE t (id int)", "CREATE UNLOGGED TABLE other (id int)")
    server.execute("DROP PUBLICATION streamgauge", "CREATE PUBLICATION streamgauge FOR TABLE t")
    reading = Reading(server, tmp_path)
    reading.source._once = False
    server.execute("CREATE TABLE more AS SELECT generate_series(1, 20000)")
    reading.source._look_at_lag()
    assert reading.source.lag_bytes > 500_000
    while reading.source.lag_bytes > 10_000:
        if (batch := reading.source.read(0.5)) is not None:
            assert not len(batch)
            reading.positions.update(batch.positions)
            batch.acknowledged()
    reading.restart()  # the slot is not beyond what was stored
    assert reading.read() == []
    reading.source.close()


def test_a_server_that_shuts_down_hears_that_all_was_delivered(
    server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for that, and the position would be stored an hour later otherwise."""
    monkeypatch.setattr(postgres, "_IDLE_SECONDS", 3_600.0)
    server.execute("CREATE TABLE t (id int)", "DROP PUBLICATION streamgauge")
    server.execute("CREATE PUBLICATION streamgauge FOR TABLE t")
    reading = Reading(server, tmp_path)
    source, end = reading.source, threading.Event()
    source._once, source._next_idle = False, time.monotonic() + 3_600

    def follow() -> None:
        while not end.is_set():
            if (batch := source.read(0.1)) is not None:
                batch.acknowledged()

    thread = threading.Thread(target=follow)
    thread.start()
    server.execute("CREATE TABLE other AS SELECT generate_series(1, 1000)")
    server.stop("fast", 45)
    server.start()
    end.set()
    thread.join()
    source.close()


def test_a_publication_of_any_name(server: PostgresServer, tmp_path: Path) -> None:
    server.execute("""CREATE PUBLICATION "it's ""odd, 1" FOR ALL TABLES""", "CREATE TABLE t (id int)")
    reading = Reading(server, tmp_path, publication="it's \"odd, 1")
    server.execute("INSERT INTO t VALUES (1)")
    assert [one["row"] for one in reading.read()] == [{"id": 1}]
    reading.source.close()
    server.execute("""DROP PUBLICATION "it's ""odd, 1" """)


def test_a_slot_that_another_agent_still_has_is_waited_for(server: PostgresServer, tmp_path: Path) -> None:
    server.execute("CREATE TABLE t (id int PRIMARY KEY)")
    first = Reading(server, tmp_path)
    second = Reading(server, tmp_path)
    assert second.source.read(0.1) is None and not second.source.ended
    server.execute("INSERT INTO t VALUES (1)")
    first.source.close()
    second.source._end = 1
    while not (batch := second.source.read(5)) or not len(batch):
        pass
    assert json.loads(batch.values()[0])["row"] == {"id": 1}
    second.source.close()


def test_what_can_not_be_read_any_more_is_refused(server: PostgresServer, tmp_path: Path) -> None:
    server.execute("CREATE TABLE t (id int PRIMARY KEY)")
    reading = Reading(server, tmp_path, slot="s")
    server.execute("INSERT INTO t VALUES (1)")
    reading.read()
    stored = reading.positions["log"]
    reading.source.close()
    left(server)
    server.execute(
        "INSERT INTO t VALUES (2)",
        "SELECT pg_logical_slot_get_binary_changes('s', NULL, NULL, "
        "'proto_version', '1', 'publication_names', 'streamgauge')",
    )
    with pytest.raises(IngestError, match=r"delivered only up to .* another program has read the slot"):
        reading._open()
    server.execute("SELECT pg_drop_replication_slot('s')")
    with pytest.raises(IngestError, match="the slot 's' no longer exists on the server"):
        reading._open()
    fresh_one = Reading(server, tmp_path, slot="s2")
    assert fresh_one.read() == [] and fresh_one.positions["log"]["system"] == stored["system"]
    fresh_one.source.close()
    left(server)
    server.execute("SELECT pg_drop_replication_slot('s2')")
    with pytest.raises(IngestError, match="the slot 's2' no longer exists on the server"):
        fresh_one._open()
    reading.positions = {"log": {**stored, "system": "7"}}
    with pytest.raises(IngestError, match="this is not the server read before"):
        reading._open()
    server.execute("SELECT pg_create_logical_replication_slot('s', 'test_decoding')")
    reading.positions = {}
    with pytest.raises(IngestError, match="uses the plugin test_decoding"):
        reading._open()
    server.execute("DROP PUBLICATION streamgauge")
    with pytest.raises(IngestError, match='CREATE PUBLICATION "streamgauge" FOR TABLE'):
        reading._open()


def test_slots_of_any_two_sources_differ(server: PostgresServer, tmp_path: Path) -> None:
    places = [Place("web-1", "a", tmp_path), Place("web_1", "a", tmp_path), Place("W" * 90, "a", tmp_path)]
    sources = [Postgres(dsn=server.dsn).open(place, {}) for place in places]
    slots = [source._settings.slot for source in sources]
    assert len(set(slots)) == 3 and all(slot.startswith("streamgauge_w") for slot in slots)
    for source in sources:
        source.close()


@each(
    ("settings", "text"),
    [
        ({"dsn": "host"}, "dsn must be a libpq connection string"),
        ({"dsn": "host=db", "slot": "A-b"}, "slot may contain only letters a to z, digits and _, got 'A-b'"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, str], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Postgres(**settings)


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    settings = Postgres(dsn="host=127.0.0.1 port=1 user=u password=hidden dbname=d")
    with pytest.raises(IngestError, match="PostgreSQL can't stream its log") as raised:
        settings.open(Place("agent", "shop", tmp_path), {})
    assert "hidden" not in str(raised.value)


@pytest.mark.kafka
def test_into_kafka_and_on_after_a_restart(kafka: Any, server: PostgresServer, tmp_path: Path) -> None:
    topic = fresh("cdc")
    given = {"type": "postgres", "dsn": server.dsn, "slot": "s"}
    server.execute("CREATE TABLE t (id int PRIMARY KEY)")
    agent(kafka, tmp_path, given, topic).run()
    for first in (0, 100):
        server.execute(f"INSERT INTO t SELECT generate_series({first}, {first + 99})")
        again = agent(kafka, tmp_path, given, topic)
        again.run()
        assert again.account.sent == 100 and "lag_bytes" in again.describe()
    sent = messages(kafka, topic, 200)
    assert [json.loads(one.value() or b"")["row"]["id"] for one in sent] == list(range(200))
    assert sent[7].key() == b'{"id":7}'


class Replica:
    """A table as its changes make it: rows by their keys."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, Any]] = {}

    def apply(self, change: dict[str, Any], key: bytes | None) -> None:
        if change["op"] == "truncate":
            self.rows.clear()
            return
        assert key is not None
        name = key.decode()
        before = dict[str, Any]()
        if change["op"] != "insert":
            old = change.get("old")
            gone = name if old is None else json.dumps({"id": old["id"]}, separators=(",", ":"))
            before = self.rows.pop(gone)
        if change["op"] != "delete":
            kept = {column: before[column] for column in change.get("unchanged", ())}
            self.rows[name] = {**change["row"], **kept}


def changed_at_random(chance: random.Random) -> str:
    """A statement, in a transaction of several or in none."""
    number, size = chance.randrange(8), chance.choice((3, 9_000))
    value = chance.choice(("NULL", f"repeat('{chance.choice('äb')}', {size})"))
    insert = f"INSERT INTO t (id, a, big) VALUES ({number}, {number}, {value})"
    return chance.choice(
        (
            f"{insert} ON CONFLICT DO NOTHING",
            f"{insert} ON CONFLICT (id) DO UPDATE SET a = t.a + 1",
            f"UPDATE t SET a = a + 1 WHERE id >= {number}",
            f"UPDATE t SET big = {value} WHERE id = {number}",
            f"UPDATE t SET id = id + 100 WHERE id = {number} AND {number + 100} NOT IN (SELECT id FROM t)",
            f"DELETE FROM t WHERE id % 5 = {number}",
            "TRUNCATE t" if chance.random() < 0.2 else "SELECT 1",
            f"SAVEPOINT s; DELETE FROM t; ROLLBACK TO s; UPDATE t SET a = {number}",
            f"ALTER TABLE t DROP COLUMN IF EXISTS extra; ALTER TABLE t ADD extra int DEFAULT {number}",
        )
    )


@pytest.mark.parametrize("seed", seeds(3, 60))
def test_a_table_made_of_its_changes_is_the_table(server: PostgresServer, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    server.execute("CREATE TABLE t (id int PRIMARY KEY, a int, big text, extra int DEFAULT 0)")
    server.execute("ALTER TABLE t ALTER big SET STORAGE EXTERNAL")
    if chance.random() < 0.3:
        server.execute("ALTER TABLE t REPLICA IDENTITY FULL")
    reading, replica, raw = Reading(server, tmp_path), Replica(), 0
    for _ in range(10):
        for _ in range(chance.randint(1, 6)):
            parts = "; ".join(changed_at_random(chance) for _ in range(chance.randint(1, 4)))
            server.execute(f"BEGIN; {parts}; {chance.choice(('COMMIT', 'COMMIT', 'COMMIT', 'ROLLBACK'))}")
        for change, key in zip(reading.read(), reading.keys[raw:]):
            replica.apply(change, key)
        raw = len(reading.keys)
        if chance.random() < 0.3:
            reading.restart()
        there = server.execute("SELECT id, to_jsonb(t) - 'extra' FROM t")
        made = {key: {n: v for n, v in row.items() if n != "extra"} for key, row in replica.rows.items()}
        assert made == {f'{{"id":{number}}}': row for number, row in there}
    reading.source.close()
