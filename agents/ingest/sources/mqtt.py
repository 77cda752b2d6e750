"""An MQTT broker's messages: those of QoS 1 and 2 are acknowledged when they are delivered."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from ..batch import Batch, IngestError, Positions
from ..component import Place
from ..inbox import CAPACITY, FULL, Arrival, Inbox

log = logging.getLogger("streamgauge.ingest")

_CONNECT_SECONDS = 15.0
_FOR_GOOD = 0xFFFFFFFF
"""A session that the broker keeps until the agent is back."""


@dataclass(frozen=True, kw_only=True)
class Mqtt:
    """The messages of `topics`, which may have MQTT's wildcards, from the broker at `host` and `port`.

    A message's key in Kafka is its topic. The broker keeps the session under `client_id`, the agent's and the
    source's names by default, so messages of QoS 1 and 2 that come while the agent is unreachable come
    later. Those that an agent has not acknowledged are sent again. `version` is 5, or 4 for MQTT 3.1.1; `tls`
    connects by TLS.
    """

    topics: Sequence[str]
    host: str = "localhost"
    port: int = 1883
    qos: int = 1
    client_id: str = ""
    user: str = ""
    password: str = ""
    tls: bool = False
    version: int = 5
    capacity: int = CAPACITY

    def __post_init__(self) -> None:
        if isinstance(self.topics, str) or not self.topics:
            raise ValueError(f'topics must be a list, as in ["sensors/#"], got {self.topics!r}')
        if self.qos not in (0, 1, 2):
            raise ValueError(f"qos must be 0, 1 or 2, got {self.qos}")
        if self.version not in (4, 5):
            raise ValueError(f"version must be 5, or 4 for MQTT 3.1.1, got {self.version}")

    def open(self, place: Place, positions: Positions) -> MqttSource:
        """See `SourceSettings`."""
        return MqttSource(self, place)


class MqttSource:
    """A `Source` of a broker's messages. Raises `IngestError` if it can't be subscribed to."""

    waited_for, finite = True, False

    def __init__(self, settings: Mqtt, place: Place) -> None:
        self._settings = settings
        self.volatile = settings.qos == 0
        self.inbox = Inbox(settings.capacity)
        self._ready = threading.Event()
        self._refusal: str | None = None
        name = settings.client_id or f"streamgauge-{place.agent}-{place.source}"
        self._client = mqtt.Client(
            CallbackAPIVersion.VERSION2,
            name,
            protocol=mqtt.MQTTv5 if settings.version == 5 else mqtt.MQTTv311,
            clean_session=None if settings.version == 5 else False,
            manual_ack=True,
        )
        if settings.user:
            self._client.username_pw_set(settings.user, settings.password)
        if settings.tls:
            self._client.tls_set()
        self._client.reconnect_delay_set(1, 30)
        self._client.on_connect = self._connected
        self._client.on_subscribe = self._subscribed
        self._client.on_disconnect = self._disconnected
        self._client.on_message = self._arrived
        self._connect()

    def _connect(self) -> None:
        settings = self._settings
        options: dict[str, Any] = {}
        if settings.version == 5:
            properties = Properties(PacketTypes.CONNECT)
            properties.SessionExpiryInterval = _FOR_GOOD
            # No more come unacknowledged than there is room for.
            properties.ReceiveMaximum = min(max(settings.capacity, 1), 65_535)
            options = {"clean_start": False, "properties": properties}
        try:
            self._client.connect(settings.host, settings.port, 60, **options)
        except OSError as error:
            raise IngestError(f"no MQTT broker at {settings.host}:{settings.port}: {error}") from None
        self._client.loop_start()
        ready = self._ready.wait(_CONNECT_SECONDS)
        if self._refusal is not None or not ready:
            self.close()
            why = self._refusal or f"no answer within {_CONNECT_SECONDS:.0f} s"
            raise IngestError(f"the MQTT broker at {settings.host}:{settings.port} refuses: {why}")

    @property
    def ended(self) -> bool:
        """See `Source`."""
        return self.inbox.empty

    def read(self, seconds: float) -> Batch | None:
        """See `Source`."""
        return self.inbox.read(seconds)

    def drain(self) -> None:
        """See `DrainedSource`."""
        self._client.disconnect()
        self._client.loop_stop()

    def discard(self) -> int:
        """See `DrainedSource`."""
        self.drain()
        return self.inbox.discard()

    def close(self) -> None:
        """See `Source`."""
        self.inbox.close()
        self.drain()

    def _connected(self, client: Any, _: Any, flags: Any, reason: Any, properties: Any) -> None:
        if reason.is_failure:
            self._refusal = str(reason)
            self._ready.set()
            return
        client.subscribe([(topic, self._settings.qos) for topic in self._settings.topics])

    def _subscribed(self, client: Any, _: Any, mid: int, reasons: Any, properties: Any) -> None:
        refused = [
            f"{topic}: {reason}" for topic, reason in zip(self._settings.topics, reasons) if reason.is_failure
        ]
        if refused:
            self._refusal = "; ".join(refused)
        self._ready.set()

    def _disconnected(self, client: Any, _: Any, flags: Any, reason: Any, properties: Any) -> None:
        if reason.is_failure and self._refusal is None and not self.inbox.closed:
            log.warning("the MQTT broker at %s disconnected (%s); reconnecting", self._settings.host, reason)

    def _arrived(self, client: mqtt.Client, _: Any, message: mqtt.MQTTMessage) -> None:
        values, keys = [bytes(message.payload)], [message.topic.encode()]
        if message.qos == 0:
            if not self.inbox.offer(Arrival(values, keys)):
                self.inbox.drop(1, FULL)
            return

        def acknowledge() -> None:
            client.ack(message.mid, message.qos)

        # What finds no room is not acknowledged, and comes again when the agent connects again.
        self.inbox.put(Arrival(values, keys, acknowledged=acknowledge))
