"""An MQTT broker's messages; messages of QoS 1 and 2 are acknowledged after delivery."""

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
from paho.mqtt.subscribeoptions import SubscribeOptions

from ..batch import Batch, IngestError, Positions
from ..component import Place
from ..inbox import CAPACITY, FULL, Arrival, Inbox

log = logging.getLogger("streamgauge.ingest")

_CONNECT_SECONDS = 15.0
_TAKEN_OVER = 0x8E
_FOR_GOOD = 0xFFFFFFFF
"""The expiry interval of a session that the broker stores until the agent is back."""


@dataclass(frozen=True, kw_only=True)
class Mqtt:
    """The messages of `topics`, which may have MQTT's wildcards, from the broker at `host` and `port`.

    A message's key in Kafka is its topic. The broker stores the session under `client_id`, by default the
    agent's and the source's names, so messages of QoS 1 and 2 that come while the agent is down are delivered
    later. Messages that an agent has not acknowledged are sent again. With `qos` 2 it subscribes with QoS 1,
    because a client that is killed after the first half of QoS 2's handshake would have lost the message.
    `version` is 5, or 4 for MQTT 3.1.1; `tls` connects by TLS.
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
        self._failure: str | None = None
        # The number of sessions that the broker has lost. Message numbers are only valid within one session.
        self._lost_sessions = 0
        name = self._name = settings.client_id or f"streamgauge-{place.agent}-{place.source}"
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
            # The broker sends no more unacknowledged messages than there is room for.
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
        batch = self.inbox.read(seconds)
        if batch is None and self._failure is not None:
            raise IngestError(self._failure)
        return batch

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

    def _connected(self, client: mqtt.Client, _: Any, flags: Any, reason: Any, properties: Any) -> None:
        if reason.is_failure:
            self._refused(str(reason))
            return
        if not flags.session_present:
            self._lost_sessions += 1
        elif self._settings.version == 4 and self._ready.is_set():
            return  # it knows the topics, and would send retained messages again
        qos = min(self._settings.qos, 1)
        if self._settings.version == 5:
            client.subscribe(
                [(one, SubscribeOptions(qos, retainHandling=1)) for one in self._settings.topics]
            )
        else:
            client.subscribe([(one, qos) for one in self._settings.topics])

    def _subscribed(self, client: Any, _: Any, mid: int, reasons: Any, properties: Any) -> None:
        refused = [
            f"{topic}: {reason}" for topic, reason in zip(self._settings.topics, reasons) if reason.is_failure
        ]
        if refused:
            self._refused("; ".join(refused))
        self._ready.set()

    def _refused(self, why: str) -> None:
        """Handle a refusal: at the start it ends the agent; later it is retried, as the broker may
        recover."""
        if self._ready.is_set():
            log.warning("the MQTT broker at %s refuses: %s", self._settings.host, why)
        else:
            self._refusal = why
            self._ready.set()

    def _disconnected(self, client: mqtt.Client, _: Any, flags: Any, reason: Any, properties: Any) -> None:
        if self._settings.version == 5 and reason.value == _TAKEN_OVER:
            self._failure = (
                f"another client named {self._name!r} has taken over at {self._settings.host}: this agent "
                "ends; give one of them another name, or another client_id, if both are to run"
            )
            client.disconnect()
        elif reason.is_failure and self._refusal is None and not self.inbox.closed:
            log.warning("the MQTT broker at %s disconnected (%s); reconnecting", self._settings.host, reason)

    def _arrived(self, client: mqtt.Client, _: Any, message: mqtt.MQTTMessage) -> None:
        values, keys = [bytes(message.payload)], [message.topic.encode()]
        if message.qos == 0:
            if not self.inbox.offer(Arrival(values, keys)):
                self.inbox.drop(1, FULL)
            return

        session = self._lost_sessions

        def acknowledge() -> None:
            # In a later session, the same number would belong to another message.
            if session == self._lost_sessions:
                client.ack(message.mid, message.qos)

        # A message that finds no room is not acknowledged; the broker sends it again after a reconnect.
        self.inbox.put(Arrival(values, keys, acknowledged=acknowledge))
