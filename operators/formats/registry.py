"""Schemas from a schema registry by id, through confluent-kafka's client.

Messages in Confluent's wire format begin with a byte 0 and the id of the schema that wrote them, in four
bytes. A schema never changes under its id, so each process requests it once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit, urlunsplit

import numpy as np
import polars as pl
import pyarrow as pa

from ...sketches.core.errors import StreamgaugeError
from ...sketches.core.extras import naming_extras
from ..secrets import HIDDEN, Settings, without_secrets
from .decode import Decoded
from .messages import Messages
from .per_message import Build, Misread, Read, one_by_one
from .reasons import Reason
from .retryable_error import Unavailable

_QUICK: dict[str, Any] = {"timeout": 5, "max.retries": 2, "retries.wait.ms": 200}
"""A request is given up after some seconds; between retries a stop is noticed."""

FRAME = 5
"""The bytes before a value: 0, and the schema's id."""
UNFRAMED = "not in the wire format of a schema registry"

_UNKNOWN = (40401, 40402, 40403)
"""The registry's error codes for an unknown subject, version or schema."""
_ASK_AGAIN_SECONDS = 30.0
_MOST_UNKNOWN = 10_000

T = TypeVar("T")


class UnknownSchema(StreamgaugeError, LookupError):
    """The registry answered that it has no such schema."""


@dataclass(frozen=True, eq=False)
class Registry:
    """A schema registry: its address, or the settings of confluent-kafka's `SchemaRegistryClient`.

    Its secrets appear in no repr and no error, and it is not part of a stream's definition. It can be
    pickled, without its connection.

    >>> Registry.of({"url": "https://box:8081", "basic.auth.user.info": "me:tr0ut"})
    Registry(settings={'url': 'https://box:8081', 'basic.auth.user.info': '…'})
    """

    settings: Mapping[str, Any]
    _unknown: dict[int, float] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, given: str | Mapping[str, Any]) -> Registry:
        """Create it from a URL or settings. Raises `TypeError` or `ValueError` for invalid settings."""
        settings = {"url": given} if isinstance(given, str) else given
        if not isinstance(settings, Mapping) or not isinstance(settings.get("url"), str):
            raise TypeError(
                'registry: name its address, as in "http://localhost:8081", or the settings of its client, '
                'as in {"url": "https://…", "basic.auth.user.info": "user:password"}'
            )
        registry = cls(Settings(settings))
        try:
            _ = registry._client
        except OSError as error:
            named = ", ".join(f"{name}={value!r}" for name, value in settings.items() if "location" in name)
            raise ValueError(f"registry: {registry._clean(error)}; look at {named}") from None
        except (ValueError, TypeError) as error:
            raise ValueError(f"registry: {registry._clean(error)}") from None
        return registry

    def __getstate__(self) -> dict[str, Any]:
        return {"settings": self.settings, "_unknown": {}}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Registry) and dict(self.settings) == dict(other.settings)

    def __hash__(self) -> int:
        return hash(self.settings["url"])

    @property
    def address(self) -> str:
        """Its URL, without a login."""
        return without_secrets(self.settings["url"])

    @cached_property
    def _client(self) -> Any:
        with naming_extras():
            from confluent_kafka.schema_registry import SchemaRegistryClient

        return SchemaRegistryClient({**_QUICK, **_without_logins(self.settings)})

    def schema(self, number: int, form: str | None = None) -> Any:
        """The schema with an id, with `schema_str`, `schema_type` and `references`.

        Raises `UnknownSchema` if the registry has none, `Unavailable` if it can't be reached. An unknown id
        is requested again only after half a minute, because there may be many messages with broken ids.
        """
        now = time.monotonic()
        if self._unknown.get(number, 0.0) > now:
            raise UnknownSchema(f"the schema registry knows no schema {number}")
        try:
            return self._call(f"schema {number}", lambda: self._client.get_schema(number, fmt=form))
        except UnknownSchema:
            if len(self._unknown) >= _MOST_UNKNOWN:
                self._unknown.clear()
            self._unknown[number] = now + _ASK_AGAIN_SECONDS
            raise

    def version(self, subject: str, number: int | None = None, form: str | None = None) -> Any:
        """The schema of a subject's version, by default the latest; raises as `schema` does."""
        what = f"{'latest ' if number is None else ''}version{'' if number is None else f' {number}'}"
        if number is None:
            ask = lambda: self._client.get_latest_version(subject, fmt=form)  # noqa: E731
        else:
            ask = lambda: self._client.get_version(subject, number, fmt=form)  # noqa: E731
        return self._call(f"{what} of the subject {subject!r}", ask).schema

    def latest(self, subject: str) -> tuple[int, str]:
        """The id and the text of a subject's latest schema, for writing; raises as `schema` does."""
        what = f"latest version of the subject {subject!r}"
        version = self._call(what, lambda: self._client.get_latest_version(subject))
        return version.schema_id, version.schema.schema_str

    def _call(self, what: str, ask: Callable[[], T]) -> T:
        with naming_extras():
            from confluent_kafka.schema_registry.error import OAuthTokenError, SchemaRegistryError

        try:
            return ask()
        except SchemaRegistryError as error:
            if error.error_code in _UNKNOWN:
                raise UnknownSchema(f"the schema registry knows no {what}") from None
            status = error.http_status_code
            passing = status in (408, 429) or status >= 500
            reason = f"it answers {status}: {self._clean(error.error_message)}"
            if status in (401, 403):
                reason += "; look at its settings, such as basic.auth.user.info"
            raise self._unavailable(what, reason, passing) from None
        except (_transport_error(), OAuthTokenError) as error:
            raise self._unavailable(what, self._clean(error) or type(error).__name__, True) from None
        except Exception as error:  # its client may raise anything for an answer it can't read
            raise self._unavailable(what, f"no answer of a registry: {self._clean(error)}", False) from None

    def _unavailable(self, what: str, reason: str, passing: bool) -> Unavailable:
        return Unavailable(f"the schema registry {self.address} failed to return {what}: {reason}", passing)

    def _clean(self, error: object) -> str:
        text = without_secrets(str(error).split("\n")[0], self.settings)
        for part in _without_logins(self.settings).get("basic.auth.user.info", "").split(":", 1)[1:]:
            text = text.replace(part, HIDDEN) if part else text
        return text


def _transport_error() -> type[Exception]:
    """The error that its client raises without an answer; its versions use different HTTP libraries."""
    try:
        from confluent_kafka.schema_registry.common import _httpx_compat
    except ImportError:
        import httpx

        return httpx.TransportError
    return _httpx_compat.httpx.TransportError


def _without_logins(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Move an address's login to a separate setting, because HTTP clients log the addresses they request.

    >>> _without_logins({"url": "https://me:tr0ut@box:8081,https://other:8081"})
    {'url': 'https://box:8081,https://other:8081', 'basic.auth.user.info': 'me:tr0ut'}
    """
    cleaned = dict(settings)
    if "basic.auth.user.info" in cleaned:
        return cleaned
    addresses = [urlsplit(one.strip()) for one in cleaned["url"].split(",")]
    logins = [one for one in addresses if one.username and one.password]
    if logins:
        cleaned["basic.auth.user.info"] = f"{unquote(logins[0].username)}:{unquote(logins[0].password)}"
        bare = [one._replace(netloc=one.netloc.rpartition("@")[2]) for one in addresses]
        cleaned["url"] = ",".join(map(urlunsplit, bare))
    return cleaned


def schema_ids(messages: Messages) -> np.ndarray:
    """Each message's schema id (int64): −1 for a tombstone, −2 for a value not in the wire format.

    >>> import streamgauge as sg
    >>> schema_ids(sg.formats.Messages.of([bytes([0, 0, 0, 1, 2, 99]), b"{}", None])).tolist()
    [258, -2, -1]
    """
    starts = messages.starts
    long = messages.ends - starts >= FRAME
    at = np.where(long, starts, 0)
    ids = np.full(len(messages), -2, np.int64)
    if long.any():
        byte = [messages.lines[at + i].astype(np.int64) for i in range(FRAME)]
        framed = long & (byte[0] == 0)
        ids[framed] = (byte[1] << 24 | byte[2] << 16 | byte[3] << 8 | byte[4])[framed]
    ids[messages.is_null] = -1
    return ids


def by_schema(
    messages: Messages,
    reading_of: Callable[[int], Read],
    build: Build,
    finish: Callable[[pa.Array], pl.DataFrame],
) -> Decoded:
    """The rows of messages in the wire format, each read as its schema's id requires: see `per_message`."""
    ids = schema_ids(messages)
    readings = {number: reading_of(number) for number in np.unique(ids).tolist()}
    return one_by_one(messages, [readings[number] for number in ids.tolist()], build, finish)


def refusing(reason: str) -> Read:
    """A reader that refuses every message, for this reason."""

    def read(data: memoryview) -> Any:
        raise Misread(reason)

    return read


def unframed(data: memoryview) -> Any:
    """Refuse a message that is not in the wire format."""
    begins = f"it begins with byte {data[0]}, not 0" if len(data) >= FRAME else f"it has {len(data)} bytes"
    raise Misread(Reason(UNFRAMED, f"{UNFRAMED}: {begins}"))
