"""Publishing messages to an MQTT broker, each acknowledged, over a connection that is opened on demand."""

from __future__ import annotations

import re
import threading
from typing import Any
from urllib.parse import unquote, urlsplit

from ....sketches.core.extras import naming_extras
from .errors import OutletError

_PORTS = {"mqtt": 1883, "mqtts": 8883}
_URL = re.compile(r"mqtts?://[^/]+/[^#+\0]+")
_SECONDS = 15.0


def check_mqtt_url(url: object) -> None:
    """Raise `ValueError` for anything but an MQTT address with a topic."""
    if not isinstance(url, str) or not _URL.fullmatch(url):
        shown = re.sub(r"(?<=://)[^/\s]+(?=@)", "…", str(url))
        raise ValueError(f"mqtt must be mqtt://HOST:PORT/TOPIC, got {shown!r}")
    try:
        urlsplit(url).port  # noqa: B018 - refused by the property
    except ValueError as error:
        raise ValueError(f"mqtt must be mqtt://HOST:PORT/TOPIC: {error}") from None


class MqttPublisher:
    """Publishes to the topic of ``mqtt://HOST:PORT/TOPIC`` or ``mqtts://…`` at QoS 1.

    `user` and `password` default to the URL's. For use by one thread.
    """

    def __init__(self, url: str, user: str = "", password: str = "") -> None:
        check_mqtt_url(url)
        parts = urlsplit(url)
        self._host = parts.hostname or "localhost"
        self._port = parts.port or _PORTS[parts.scheme]
        self._tls = parts.scheme == "mqtts"
        self._user = user or unquote(parts.username or "")
        self._password = password or unquote(parts.password or "")
        self.topic = parts.path[1:]
        self._client: Any = None

    @property
    def place(self) -> str:
        """Its broker and topic, without user and password."""
        return f"{self._host}:{self._port}/{self.topic}"

    def publish(self, payload: bytes) -> None:
        """Send a message and wait for the broker's acknowledgement. Raises `OutletError` without one."""
        if self._client is not None and not self._client.is_connected():
            self.close()
        try:
            if self._client is None:
                self._client = self._connected()
            sent = self._client.publish(self.topic, payload, qos=1)
            sent.wait_for_publish(_SECONDS)
            if not sent.is_published():
                raise OutletError(f"no acknowledgement within {_SECONDS:g} s", may_pass=True)
        except OutletError:
            self.close()
            raise
        except (OSError, RuntimeError, ValueError) as error:
            self.close()
            raise OutletError(str(error) or type(error).__name__, may_pass=True) from None

    def close(self) -> None:
        """Close the connection; the next message opens a new one."""
        client, self._client = self._client, None
        if client is not None:
            client.disconnect()
            client.loop_stop()

    def _connected(self) -> Any:
        with naming_extras():
            from paho.mqtt import client as mqtt

        client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
        if self._user:
            client.username_pw_set(self._user, self._password)
        if self._tls:
            client.tls_set()
        answered, reasons = threading.Event(), list[Any]()

        def on_connect(_: Any, __: Any, ___: Any, reason: Any, ____: Any) -> None:
            reasons.append(reason)
            answered.set()

        client.on_connect = on_connect
        client.connect(self._host, self._port)
        client.loop_start()
        answered.wait(_SECONDS)
        if reasons and not reasons[0].is_failure:
            return client
        client.disconnect()
        client.loop_stop()
        if reasons:
            raise OutletError(f"the broker refuses: {reasons[0]}")
        raise OutletError(f"the broker did not answer within {_SECONDS:g} s", may_pass=True)
