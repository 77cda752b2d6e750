"""Translation of librdkafka's settings, which users know, to those of the raw record batch client."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kafka.net.sasl.oauth import AbstractTokenProvider

from .source import ReadError

_NEVER_MS = 1 << 31


def _addresses(text: Any) -> list[str]:
    return [part.strip() for part in str(text).split(",")]


_NAMES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "bootstrap.servers": ("bootstrap_servers", _addresses),
    "metadata.broker.list": ("bootstrap_servers", _addresses),
    "client.id": ("client_id", str),
    "client.rack": ("client_rack", str),
    "isolation.level": ("isolation_level", str),
    "fetch.min.bytes": ("fetch_min_bytes", int),
    "fetch.max.bytes": ("fetch_max_bytes", int),
    "fetch.wait.max.ms": ("fetch_max_wait_ms", int),
    "max.partition.fetch.bytes": ("max_partition_fetch_bytes", int),
    "fetch.message.max.bytes": ("max_partition_fetch_bytes", int),
    "receive.message.max.bytes": ("receive_message_max_bytes", int),
    "connections.max.idle.ms": ("connections_max_idle_ms", lambda text: int(text) or _NEVER_MS),
    "metadata.max.age.ms": ("metadata_max_age_ms", int),
    "reconnect.backoff.ms": ("reconnect_backoff_ms", int),
    "reconnect.backoff.max.ms": ("reconnect_backoff_max_ms", int),
    "retry.backoff.ms": ("retry_backoff_ms", int),
    "socket.timeout.ms": ("request_timeout_ms", int),
    "socket.receive.buffer.bytes": ("receive_buffer_bytes", int),
    "socket.send.buffer.bytes": ("send_buffer_bytes", int),
    "client.dns.lookup": ("client_dns_lookup", str),
    "security.protocol": ("security_protocol", lambda text: str(text).upper()),
    "sasl.mechanism": ("sasl_mechanism", str),
    "sasl.mechanisms": ("sasl_mechanism", str),
    "sasl.username": ("sasl_plain_username", str),
    "sasl.password": ("sasl_plain_password", str),
    "sasl.kerberos.service.name": ("sasl_kerberos_service_name", str),
}
_RESET = {"earliest": "earliest", "smallest": "earliest", "beginning": "earliest", "error": "none"}
_RESET |= dict.fromkeys(("latest", "largest", "end"), "latest")
_OF_OTHERS = (
    # Groups, sending, statistics and librdkafka internals: not needed for reading.
    *("group.", "session.", "heartbeat.", "partition.assignment.", "coordinator.", "max.poll.", "consume."),
    *("enable.", "auto.commit.", "offset.store.", "queued.", "fetch.queue.", "fetch.error.", "check.crcs"),
    *("acks", "request.", "batch.", "compression.", "delivery.", "linger.", "message.", "queue.", "retries"),
    *("transaction", "partitioner", "sticky.", "statistics.", "log", "debug", "api.version.", "broker."),
    *("socket.", "topic.", "allow.auto.", "max.in.flight", "metadata.", "internal."),
    *(
        "retry.backoff.max.ms",
        "error_cb",
        "logger",
        "stats_cb",
        "throttle_cb",
        "builtin.features",
        "default.",
    ),
)
_TLS = (
    *("ssl.ca.location", "ssl.ca.pem", "ssl.certificate.location", "ssl.certificate.pem", "ssl.key.location"),
    *("ssl.key.pem", "ssl.key.password", "ssl.cipher.suites", "ssl.crl.location"),
    *("ssl.endpoint.identification.algorithm", "enable.ssl.certificate.verification"),
)


def raw_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """The reading client's settings. Raises `ReadError` naming a setting without a counterpart.

    >>> raw_settings({"bootstrap.servers": "box:9092", "fetch.wait.max.ms": 50, "session.timeout.ms": 9000})
    {'bootstrap_servers': ['box:9092'], 'fetch_max_wait_ms': 50}
    """
    settings: dict[str, Any] = {}
    for name, value in config.items():
        if name in _TLS:
            continue
        if name in _NAMES:
            own, made = _NAMES[name]
            settings[own] = made(value)
        elif name == "auto.offset.reset":
            settings["auto_offset_reset"] = _RESET[str(value)]
        elif name == "oauth_cb":
            settings["sasl_oauth_token_provider"] = _Tokens(
                value, str(config.get("sasl.oauthbearer.config", ""))
            )
        elif not name.startswith(_OF_OTHERS) and name != "sasl.oauthbearer.config":
            raise ReadError(f"only librdkafka itself has the Kafka setting {name!r}")
    protocol = settings.get("security_protocol", "PLAINTEXT")
    if protocol in ("SSL", "SASL_SSL"):
        settings["ssl_context"] = _tls(config)
    if protocol.startswith("SASL_"):
        _check_sasl(settings)
    return settings


def _check_sasl(settings: Mapping[str, Any]) -> None:
    mechanism = settings.get("sasl_mechanism", "GSSAPI")
    if mechanism not in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"):
        raise ReadError(f"only librdkafka itself has the SASL mechanism {mechanism}")
    if mechanism == "OAUTHBEARER" and "sasl_oauth_token_provider" not in settings:
        raise ReadError("only librdkafka itself gets tokens for OAUTHBEARER without an oauth_cb")


def ahead_bytes(config: Mapping[str, Any]) -> int:
    """How many bytes may be fetched and not processed yet, for all brokers together; by default 64 MiB.

    >>> ahead_bytes({"queued.max.messages.kbytes": 8192})
    8388608
    """
    return int(config.get("queued.max.messages.kbytes", 65_536)) << 10


class _Tokens(AbstractTokenProvider):
    """confluent-kafka's `oauth_cb` as a provider of tokens."""

    def __init__(self, callback: Callable[[str], tuple[Any, ...]], config: str) -> None:
        super().__init__()
        self._callback, self._config = callback, config
        self._token: tuple[Any, ...] = ()

    def token(self) -> str:
        """A currently valid token."""
        self._token = self._callback(self._config)
        return str(self._token[0])

    def extensions(self) -> dict[str, str]:
        """The extensions of the last token."""
        return {str(name): str(value) for name, value in dict(*self._token[3:4]).items()}


def _tls(config: Mapping[str, Any]) -> ssl.SSLContext:
    """The TLS context. Raises `ReadError` for files that can't be read."""
    try:
        context = ssl.create_default_context(**_authorities(config))
        if location := config.get("ssl.crl.location"):
            context.load_verify_locations(cafile=str(location))
            context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
        if ciphers := config.get("ssl.cipher.suites"):
            context.set_ciphers(str(ciphers))
        _identity(context, config)
    except (OSError, ValueError) as error:
        raise ReadError(f"TLS can't be set up: {error}; check the settings that begin with ssl.") from None
    if str(config.get("ssl.endpoint.identification.algorithm", "https")).lower() == "none":
        context.check_hostname = False
    if str(config.get("enable.ssl.certificate.verification", "true")).lower() == "false":
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _authorities(config: Mapping[str, Any]) -> dict[str, Any]:
    """The trusted authorities: only those that are named, or the system's if none are."""
    authorities: dict[str, Any] = {}
    location = str(config.get("ssl.ca.location") or "probe")
    if location != "probe":
        authorities["capath" if Path(location).is_dir() else "cafile"] = location
    if pem := config.get("ssl.ca.pem"):
        authorities["cadata"] = str(pem)
    return authorities


def _identity(context: ssl.SSLContext, config: Mapping[str, Any]) -> None:
    """The client's own certificate and key, each from a file or from text."""
    parts = [_pem(config, "ssl.key"), _pem(config, "ssl.certificate")]
    if not parts[1]:
        return
    # Python only reads them from files; only the owner can read this one, and it is deleted at once.
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write("\n".join(parts))
        file.flush()
        context.load_cert_chain(file.name, password=config.get("ssl.key.password"))


def _pem(config: Mapping[str, Any], name: str) -> str:
    """The value of a pair of settings: a text, or the content of a file."""
    location = config.get(f"{name}.location")
    return str(config.get(f"{name}.pem") or "") if not location else Path(location).read_text()
