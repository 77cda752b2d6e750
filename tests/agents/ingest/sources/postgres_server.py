"""A PostgreSQL server of the system's own package, in a folder, for tests."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from streamgauge.apps.dev.kafka.node import free_port

_CONFIG = """
wal_level = logical
fsync = off
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_wal_senders = 20
max_replication_slots = 20
"""


def find_programs() -> Path | None:
    """The folder of `initdb` and `pg_ctl`, or None where PostgreSQL isn't installed."""
    if os.getuid() == 0 and "postgres" not in {user.pw_name for user in pwd.getpwall()}:
        return None  # it does not run as root
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name))
    on_path = shutil.which("initdb")
    folders = [*debian[::-1], *([Path(on_path).parent] if on_path else [])]
    return next((folder for folder in folders if (folder / "pg_ctl").exists()), None)


class PostgresServer:
    """Listens on `port` until it is closed; `stop` and `start` are a restart of it."""

    def __init__(self) -> None:
        programs = find_programs()
        assert programs is not None
        self._programs, self.port = programs, free_port()
        self._folder = Path(tempfile.mkdtemp(prefix="postgres-"))
        if os.getuid() == 0:  # it runs as anybody but root
            os.chown(self._folder, pwd.getpwnam("postgres").pw_uid, -1)
        self._run("initdb", "-D", str(self._data), "-A", "trust", "-U", "tester", "-E", "UTF8", "--no-sync")
        with (self._data / "postgresql.conf").open("a") as file:
            file.write(f"{_CONFIG}port = {self.port}\n")
        self.start()

    @property
    def dsn(self) -> str:
        return f"host=127.0.0.1 port={self.port} user=tester dbname=postgres"

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def start(self) -> None:
        log = str(self._folder / "log")
        self._run("pg_ctl", "-D", str(self._data), "-l", log, "-w", "-t", "120", "start")

    def stop(self, mode: str = "immediate", seconds: int = 120) -> None:
        self._run("pg_ctl", "-D", str(self._data), "-m", mode, "-w", "-t", str(seconds), "stop")

    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements, each its own transaction; the rows of the last."""
        import psycopg

        with psycopg.connect(self.dsn, autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def wait(self) -> None:
        """Until it answers again."""
        import psycopg

        while True:
            try:
                self.execute("SELECT 1")
                return
            except psycopg.Error:
                time.sleep(0.1)

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self._folder)

    def _run(self, program: str, *options: str) -> None:
        command: Sequence[str] = [str(self._programs / program), *options]
        user = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.getuid() == 0 else {}
        subprocess.run(
            command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/", **user
        )
