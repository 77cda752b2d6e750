"""A real Kafka broker inside a program: one KRaft node on loopback ports, ready in seconds.

    with EmbeddedKafka() as kafka:
        kafka.create_topic("posts", partitions=4)
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})

For trials and tests, on Linux and macOS; it only listens on 127.0.0.1 and has no authentication.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from tenacity import (
    RetryError,
    Retrying,
    retry_if_exception_type,
    retry_if_result,
    stop_after_attempt,
    stop_after_delay,
    wait_fixed,
)

from ....operators.java import Java, find_java
from ....sketches.core.errors import StreamgaugeError
from .jars import kafka_jars
from .node import HOST, free_port, is_free, write_settings

_READY = "Kafka Server started"
_IN_USE = "Address already in use"
# A broker handles whole batches, so the optimising compiler doesn't pay even after millions of messages.
_JVM = (
    "-Xms64m",
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Djava.awt.headless=true",
)
_START_SECONDS = 90.0
_TOPIC_SECONDS = 60.0
_STOP_SECONDS = 10.0
_META, _RECORDS = "meta.properties", "bootstrap.checkpoint"
"""Files of a formatted folder: its owner, and the initial features of a new cluster."""
_FEATURES = ("unstable.", "metadata.version", "inter.broker.protocol.version")
"""Prefixes of settings that determine the features of a new cluster."""
_WATCHDOG = Path(__file__).with_name("watchdog.py")


class BrokerError(StreamgaugeError, RuntimeError):
    """The embedded broker has failed; the message says why, with the last lines of its log."""


class PortTakenError(BrokerError):
    """Another program listens on the port."""

    def __init__(self, port: int) -> None:
        super().__init__(
            f"port {port} on {HOST} is in use by another program; name another port, or none for a free one"
        )


class EmbeddedKafka:
    """One Kafka node, as a context manager or through `start` and `stop`.

    `port` is the port of 127.0.0.1 to listen on, by default a free one. `data` is a folder that preserves
    topics, messages and, unless another is requested, the port across restarts; without one, everything is
    deleted at the end. The broker ends with the process that started it, however that ends; with
    ``detached=True`` it runs until its process `pid` is ended.

    `settings` override the node's settings; `cluster` is the id of its cluster, by default a new one.

    Transactions, consumer groups and compaction work as on any cluster; topics are not created
    automatically. `start` raises `BrokerError`, `JarsError` or `JavaError`.
    """

    def __init__(
        self,
        port: int | None = None,
        data: str | Path | None = None,
        *,
        detached: bool = False,
        settings: Mapping[str, object] = {},
        cluster: str | None = None,
    ) -> None:
        self._settings = dict(settings)
        self._cluster = cluster
        self._requested_port = port
        self._port: int | None = None
        self._keep = None if data is None else Path(data).expanduser().resolve()
        self._folder = self._keep
        self._detached = detached
        self._process: subprocess.Popen[bytes] | None = None
        self._prepared: tuple[Java, Path] | None = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"EmbeddedKafka({self.bootstrap_servers if self.running else 'stopped'})"

    @property
    def running(self) -> bool:
        """Whether the broker's process is alive."""
        return self._process is not None and self._process.poll() is None

    @property
    def port(self) -> int:
        """The port it listens on, which stays the same after `stop` and `start`."""
        if self._port is None:
            raise BrokerError("the embedded broker has not been started yet; call start() or use `with`")
        return self._port

    @property
    def bootstrap_servers(self) -> str:
        """The broker's address, for ``bootstrap.servers``."""
        return f"{HOST}:{self.port}"

    @property
    def pid(self) -> int:
        """The process id, by which a detached broker can be ended."""
        if self._process is None:
            raise BrokerError("the embedded broker is not running; call start() or use `with`")
        return self._process.pid

    @property
    def folder(self) -> Path:
        """The folder of its data, settings and log file while it runs."""
        if self._folder is None:
            raise BrokerError("the embedded broker has no folder before start(); call start() or use `with`")
        return self._folder

    def start(self) -> Self:
        """Start the broker and return when it is ready (in seconds; the very first start fetches Kafka's
        jars).

        A broker that ended without being stopped restarts on its port, with what it had written.
        """
        if self.running:
            return self
        java, jars = self._prepared or self.prepare()
        # A port that was free a moment ago may be in use by now; use another one if nobody knows it yet.
        free_choice = self._requested_port is None and self._port is None
        port_in_use = retry_if_exception_type(PortTakenError)
        for attempt in Retrying(
            retry=port_in_use, stop=stop_after_attempt(3 if free_choice else 1), reraise=True
        ):
            with attempt:
                try:
                    self._start_once(java, jars)
                except BaseException:
                    self.stop()
                    self._port = None if free_choice else self._port
                    raise
        return self

    def prepare(self) -> tuple[Java, Path]:
        """Do what is needed once per machine, which `start` does otherwise: find Java, fetch jars.

        Returns the Java to run on and the folder of jars. Raises `JarsError` or `JavaError`.
        """
        java, jars = self._prepared = find_java(), kafka_jars().resolve()
        return java, jars

    def _start_once(self, java: Java, jars: Path) -> None:
        self._folder = self._keep or self._folder or Path(tempfile.mkdtemp(prefix="streamgauge-kafka-"))
        self._folder.mkdir(parents=True, exist_ok=True)
        self._choose_port()
        settings = write_settings(self.folder, self.port, self._settings)
        logging = f"-Dlog4j2.configurationFile={self.folder / 'logging.properties'}"
        class_path = os.pathsep.join(map(str, sorted(jars.glob("*.jar"))))
        command = [str(java.program), *_JVM, logging]
        self._format([*command, "-cp", class_path], settings, jars)
        self._process = self._launch([*command, "-cp", class_path, "kafka.Kafka", str(settings)])
        self._await_ready()

    def stop(self) -> None:
        """Stop the broker quickly, in any state; flush preserved data, and remove other data."""
        if self._process is not None:
            if self._keep is None and not self._detached:
                self._process.send_signal(signal.SIGUSR1)
            else:
                self._process.terminate()
            try:
                self._process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.send_signal(signal.SIGKILL if self._detached else signal.SIGUSR1)
                self._process.wait()
            self._process = None
        if self._keep is None and self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def kill(self) -> None:
        """End the broker like a power failure; `start` restores what it had written, if data is preserved."""
        if (process := self._process) is not None:
            process.send_signal(signal.SIGKILL if self._detached else signal.SIGUSR1)
            process.wait()

    def create_topic(self, name: str, partitions: int = 1, config: dict[str, str] | None = None) -> None:
        """Create a topic and wait until it can be written to. Raises `BrokerError` if it exists already."""
        from confluent_kafka import KafkaError, KafkaException
        from confluent_kafka.admin import AdminClient, NewTopic

        # The client would log on the screen that the broker is gone.
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
        topic: Any = NewTopic(name, num_partitions=partitions, replication_factor=1, config=config or {})
        try:
            made = admin.create_topics(
                [topic], operation_timeout=_TOPIC_SECONDS, request_timeout=_TOPIC_SECONDS
            )
            made[name].result()
        except KafkaException as error:
            if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                raise BrokerError(f"topic {name!r} exists already; choose another name") from None
            raise BrokerError(f"topic {name!r} could not be created: {error.args[0].str()}") from None

        def led() -> bool:
            try:
                known = admin.list_topics(name, timeout=_TOPIC_SECONDS).topics[name].partitions
            except KafkaException:
                return False
            return len(known) == partitions and all(one.leader >= 0 for one in known.values())

        try:
            _until(led, _TOPIC_SECONDS)
        except RetryError:
            raise BrokerError(
                f"topic {name!r} was created but has no leader after {_TOPIC_SECONDS:.0f} s; "
                "see the broker's log"
            ) from None

    def _choose_port(self) -> None:
        requested = self._requested_port or self._port
        remembered = self.folder / "port.json"
        if requested is None and remembered.is_file():
            last = int(json.loads(remembered.read_text())["port"])
            requested = last if is_free(last) else None
        if requested is not None and not is_free(requested):
            raise PortTakenError(requested)
        self._port = requested or free_port()
        remembered.write_text(json.dumps({"port": self._port}))

    def _format(self, command: list[str], settings: Path, jars: Path) -> None:
        """Give a new data folder its cluster id, and the first records of its metadata."""
        log = self.folder / "log"
        if (log / _META).is_file():
            return
        cluster = self._cluster or cluster_id()
        # The records depend only on Kafka's version and on features, and the tool would be one more JVM.
        features = any(name.startswith(_FEATURES) for name in self._settings)
        records = None if features else jars.with_name(f"{jars.name}.checkpoint")
        if records is not None and records.is_file():
            log.mkdir(exist_ok=True)
            shutil.copyfile(records, log / _RECORDS)
            number = self._settings.get("node.id", 1)
            ids = {"version": 1, "cluster.id": cluster, "node.id": number, "directory.id": cluster_id()}
            (log / _META).write_text("".join(f"{name}={value}\n" for name, value in ids.items()))
            return
        tool = ["kafka.tools.StorageTool", "format", "--ignore-formatted"]
        done = subprocess.run(
            [*command, *tool, "-t", cluster, "-c", str(settings)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            raise BrokerError(
                f"the data folder {self.folder} could not be formatted:\n{_tail(done.stdout + done.stderr)}"
            )
        if records is not None:
            with suppress(OSError):  # kept by who can
                part = records.with_name(f"{records.name}.{os.getpid()}")
                shutil.copyfile(log / _RECORDS, part)
                part.replace(records)

    def _launch(self, command: list[str]) -> subprocess.Popen[bytes]:
        if not self._detached:
            scratch = "" if self._keep else str(self.folder)
            command = [sys.executable, "-S", "-E", str(_WATCHDOG), str(os.getpid()), scratch, *command]
        with (self.folder / "broker.log").open("wb") as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                start_new_session=True,
            )

    def _await_ready(self) -> None:
        log = self.folder / "broker.log"

        def ready() -> bool:
            running, said = self.running, log.read_text(errors="replace")
            if _READY in said:
                return True
            if not running and _IN_USE in said:
                raise PortTakenError(self.port)
            if not running:
                raise BrokerError(
                    f"the embedded broker ended while starting; its log ends so:\n{_tail(said)}"
                )
            return False

        try:
            _until(ready, _START_SECONDS)
        except RetryError:
            raise BrokerError(
                f"the embedded broker was not ready after {_START_SECONDS:.0f} s; its log ends so:\n"
                f"{_tail(log.read_text(errors='replace'))}"
            ) from None


def cluster_id() -> str:
    """Return a random id, for a new cluster or a data folder."""
    identifier = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    # Like Kafka's own ids, it never begins with a dash, which Kafka's tool would read as an option.
    return identifier.replace("-", "A", 1) if identifier.startswith("-") else identifier


def _until(holds: Callable[[], bool], seconds: float) -> None:
    """Poll until a condition holds; raises `RetryError` after `seconds`."""
    retrying = Retrying(
        retry=retry_if_result(lambda held: not held), stop=stop_after_delay(seconds), wait=wait_fixed(0.02)
    )
    retrying(holds)


def _tail(said: str, lines: int = 15) -> str:
    return "\n".join(f"  {line}" for line in said.rstrip().splitlines()[-lines:])
