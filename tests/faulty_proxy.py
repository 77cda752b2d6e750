"""A small TCP proxy between Kafka's clients and a broker that delays, holds back, loses and resets.

It sees where Kafka's requests begin and of what kind they are, so it can lose the answer to a commit after
the broker has carried it out, which no killed broker does on purpose.

    with ProxiedKafka(data=folder) as kafka:
        kafka.create_topic("posts")                      # straight to the broker
        consumer = Consumer({"bootstrap.servers": kafka.proxied, ...})
        kafka.proxy.delay = 0.2                          # each request and each answer
        kafka.proxy.lose_answer(Request.END_TRANSACTION) # the next one
        kafka.proxy.reset()                              # all connections, now
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import IntEnum
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient

from streamgauge.apps.dev.kafka.broker import BrokerError, EmbeddedKafka
from streamgauge.apps.dev.kafka.node import HOST, free_port

from .waiting import until


class Request(IntEnum):
    """Kinds of requests, by the numbers of Kafka's protocol."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    COMMIT_OFFSETS = 8
    FETCH_OFFSETS = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    BEGIN_PRODUCER = 22
    ADD_PARTITIONS = 24
    ADD_OFFSETS = 25
    END_TRANSACTION = 26
    COMMIT_IN_TRANSACTION = 28
    GROUP_HEARTBEAT = 68


class FaultyProxy:
    """Passes on what clients at `address` and the broker at `target` say, as faultily as it is set to.

    For several brokers it has an address each, in `addresses`. `delay` holds back each request and each
    answer for so many seconds. While `holding`, nothing passes and no connection ends; `unreachable` does the
    same for single brokers, by their place in `targets`. While `away`, new connections are reset. `injected`
    counts the faults by name.
    """

    def __init__(self, *targets: int) -> None:
        self.targets = list(targets)
        self.delay = 0.0
        self.holding = self.away = False
        self.unreachable: set[int] = set()
        self.injected: Counter[str] = Counter()
        self.seen: Counter[int] = Counter()
        self._lost_requests: Counter[int] = Counter()
        self._lost_answers: Counter[int] = Counter()
        self._connections: set[_Connection] = set()
        self._loop = asyncio.new_event_loop()
        self._listening = [socket.create_server((HOST, 0)) for _ in targets]
        self.ports: list[int] = [own.getsockname()[1] for own in self._listening]
        self._thread = threading.Thread(target=self._run, name="faulty-proxy", daemon=True)
        self._thread.start()

    @property
    def target(self) -> int:
        """The only broker's port."""
        (port,) = self.targets
        return port

    @target.setter
    def target(self, port: int) -> None:
        self.targets = [port]

    @property
    def addresses(self) -> list[str]:
        """The address of each broker's proxy, if the brokers advertise them to their clients."""
        return [f"{HOST}:{port}" for port in self.ports]

    @property
    def address(self) -> str:
        """For ``bootstrap.servers``: the addresses of all."""
        return ",".join(self.addresses)

    def lose_request(self, kind: Request, times: int = 1) -> None:
        """Reset the connection in place of passing on the next requests of a kind."""
        self._lost_requests[kind] += times

    def lose_answer(self, kind: Request, times: int = 1) -> None:
        """Pass on the next requests of a kind, and reset the connection in place of their answers."""
        self._lost_answers[kind] += times

    def waiting(self) -> int:
        """How many of the requests and answers that are to be lost have not been yet."""
        return self._lost_requests.total() + self._lost_answers.total()

    def reset(self) -> int:
        """Reset all connections; gives how many there were."""
        return asyncio.run_coroutine_threadsafe(self._reset(), self._loop).result(120)

    def mend(self) -> None:
        """No fault from now on."""
        self.delay, self.holding, self.away = 0.0, False, False
        self.unreachable.clear()
        self._lost_requests.clear()
        self._lost_answers.clear()

    def close(self) -> None:
        """Reset all connections and listen no more."""
        self.away = True
        self.reset()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        for own in self._listening:
            own.close()
        self._loop.close()

    def loses(self, kind: int, reported: str) -> bool:
        """Whether this request, or the answer to it, is to be lost; for a connection to ask once."""
        wanted = self._lost_requests if reported == "request" else self._lost_answers
        if wanted[kind] <= 0:
            return False
        wanted[kind] -= 1
        self.injected[f"{reported} lost: {Request(kind).name}"] += 1
        return True

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        for at, own in enumerate(self._listening):
            self._loop.run_until_complete(asyncio.start_server(partial(self._serve, at), sock=own))
        self._loop.run_forever()
        for task in (left := asyncio.all_tasks(self._loop)):
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))

    async def _serve(self, at: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.away:
            self.injected["connection refused"] += 1
            return _break(writer)
        try:
            onward = await asyncio.open_connection(HOST, self.targets[at])
        except OSError:
            return _break(writer)
        connection = _Connection(self, at, (reader, writer), onward)
        self._connections.add(connection)
        try:
            await connection.run()
        finally:
            self._connections.discard(connection)

    async def _reset(self) -> int:
        result = list(self._connections)
        for connection in result:
            connection.reset()
        self.injected["connection reset"] += len(result)
        return len(result)


_Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Connection:
    """One client's connection; what it waits for an answer to is known by the requests' own numbers."""

    def __init__(self, proxy: FaultyProxy, at: int, client: _Ends, broker: _Ends) -> None:
        self._proxy, self._at, self._client, self._broker = proxy, at, client, broker
        self._requests: dict[int, int] = {}

    async def run(self) -> None:
        ways = [
            asyncio.create_task(self._pass(self._client[0], self._broker[1], self._lost_request)),
            asyncio.create_task(self._pass(self._broker[0], self._client[1], self._lost_answer)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            self.reset()
            await asyncio.gather(*ways, return_exceptions=True)

    def reset(self) -> None:
        _break(self._client[1])
        _break(self._broker[1])

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, lost: Any) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                size = await reader.readexactly(4)
                body = await reader.readexactly(struct.unpack(">i", size)[0])
                if lost(body):
                    return
                if self._proxy.delay:
                    self._proxy.injected["delayed"] += 1
                    await asyncio.sleep(self._proxy.delay)
                while self._proxy.holding or self._at in self._proxy.unreachable:
                    await asyncio.sleep(0.01)
                writer.write(size + body)
                await writer.drain()

    def _lost_request(self, body: bytes) -> bool:
        kind, _, number = struct.unpack_from(">hhi", body)
        self._proxy.seen[kind] += 1
        self._requests[number] = kind
        return self._proxy.loses(kind, "request")

    def _lost_answer(self, body: bytes) -> bool:
        return self._proxy.loses(self._requests.pop(struct.unpack_from(">i", body)[0], -1), "answer")


def _break(writer: asyncio.StreamWriter) -> None:
    """Close a connection as a machine that is gone does: by a reset, whatever is still to be sent."""
    own = writer.get_extra_info("socket")
    with suppress(OSError):
        own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


IMPATIENT = {"session.timeout.ms": 2_500, "heartbeat.interval.ms": 300, "transaction.timeout.ms": 5_000}
"""Settings of members that `ProxiedKafka` misses soon once they are dead."""


class ProxiedKafka(EmbeddedKafka):
    """A broker with a second listener, `proxied`, whose clients all come through `proxy`."""

    def __init__(self, data: Path | None = None) -> None:
        ports: set[int] = set()
        while len(ports) < 3:
            ports.add(free_port())
        plain, second, controller = ports
        self.proxy = FaultyProxy(second)
        settings = {
            "controller.quorum.voters": f"1@{HOST}:{controller}",
            "listeners": (
                f"PLAINTEXT://{HOST}:{plain},PROXIED://{HOST}:{second},CONTROLLER://{HOST}:{controller}"
            ),
            "advertised.listeners": f"PLAINTEXT://{HOST}:{plain},PROXIED://{self.proxy.address}",
            "listener.security.protocol.map": ("CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT"),
            # Members that ask for it are missed soon.
            "group.min.session.timeout.ms": 1_000,
            "group.consumer.min.session.timeout.ms": 1_000,
            "group.consumer.session.timeout.ms": 2_000,
        }
        super().__init__(plain, data, settings=settings)

    @property
    def proxied(self) -> str:
        """The address through the proxy, for ``bootstrap.servers``."""
        return self.proxy.address

    @contextmanager
    def calm(self) -> Iterator[None]:
        """Within the block nobody takes the broker down: only the one that enters it would."""
        yield

    def forget(self, prefix: str) -> None:
        """Nothing: the broker goes with its topics."""

    def create_topic(self, name: str, partitions: int = 1, config: dict[str, str] | None = None) -> None:
        """Create a topic; if a first try of the same test has left one, that one goes first."""
        try:
            super().create_topic(name, partitions, config)
        except BrokerError as error:
            if "exists already" not in str(error):
                raise
            client = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
            client.delete_topics([name])[name].result(60)
            until(lambda: name not in client.list_topics(timeout=60).topics)
            super().create_topic(name, partitions, config)

    def __exit__(self, *reported: object) -> None:
        super().__exit__(*reported)
        self.proxy.close()
