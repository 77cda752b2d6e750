"""Explanations of a client's security errors: the broker's message, and the setting to check."""

from __future__ import annotations

import re
import socket
import ssl
import struct
from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from ..secrets import without_secrets
from .faults import Refused

_PROBE_SECONDS = 1.0
_OTHER_MECHANISM = 33
"""The protocol's error code UNSUPPORTED_SASL_MECHANISM."""
_ADVICE = (
    # In order: the first entry whose words occur in the error says what to check.
    (
        "connecting to a PLAINTEXT",
        "security.protocol, which is set to TLS, and the port: the brokers don't use TLS there",
    ),
    ("connecting to a SSL listener", "security.protocol: the brokers speak TLS there"),
    (
        "certificate verify failed",
        "ssl.ca.location, the authority whose certificates are trusted, and the broker's name in its own",
    ),
    (
        r"alert (bad certificate|certificate required|unknown ca|certificate unknown|handshake failure)",
        "ssl.certificate.location and ssl.key.location: the brokers want a certificate that they trust",
    ),
    (r"ssl\.key\.location failed|ssl\.key\.pem failed", "ssl.key.location and ssl.key.password"),
    (r"ssl\.ca\.location failed|ssl\.ca\.pem failed", "ssl.ca.location: is it a file of certificates?"),
    ("ssl.certificate", "ssl.certificate.location: is it a file of certificates?"),
    ("wants a login", "security.protocol: it must be sasl_ssl or sasl_plaintext there"),
    ("OAUTHBEARER", "the settings that begin with sasl.oauthbearer."),
    (r"SSL|TLS", "security.protocol and the settings that begin with ssl."),
    (r"[Uu]nsupported|mechanism.*not enabled", "sasl.mechanisms: the brokers have others there"),
    ("", "sasl.username, sasl.password and sasl.mechanisms"),
)
_OF_SECURITY = (KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError._SSL)
_NO_TOKEN_NOW = re.compile(r"OAUTHBEARER token: .*([Cc]onnect|resolve|[Tt]imed? ?out)")
"""An identity provider that is unreachable, as a broker may be: retrying can help."""
_OF_TLS = re.compile(r"SSL handshake failed|SSL routines|connecting to a (PLAINTEXT|SSL)")


def security_refusal(faults: Iterable[KafkaError], config: Mapping[str, Any]) -> Refused | None:
    """The error for the first of a client's faults that a security setting causes, if any.

    A client without TLS on a TLS port, or without a required login, only sees that its connection ended, so
    the port is probed.
    """
    down = False
    for fault in faults:
        down |= fault.code() == KafkaError._ALL_BROKERS_DOWN
        if _NO_TOKEN_NOW.search(fault.str()):
            continue
        if fault.code() in _OF_SECURITY or _OF_TLS.search(fault.str()):
            return _refused(fault.str(), config)
    protocol = str(config.get("security.protocol", "plaintext")).lower()
    address = str(config.get("bootstrap.servers", "")).split(",")[0].strip()
    if down and protocol in ("plaintext", "sasl_plaintext") and _speaks_tls(address):
        return _refused(f"{address} ends the connection, connecting to a SSL listener", config)
    if down and protocol in ("plaintext", "ssl") and (mechanisms := _logins(address, protocol == "ssl")):
        return _refused(f"{address} wants a login by {mechanisms}, and ends the connection", config)
    return None


def refused_settings(error: KafkaException, config: Mapping[str, Any]) -> KafkaException:
    """The error for security settings with which no client can be created; other errors unchanged."""
    said = error.args[0].str()
    return _refused(said, config) if re.search(r"ssl\.|sasl\.|SASL", said) else error


def _refused(said: str, config: Mapping[str, Any]) -> Refused:
    setting = next(advice for words, advice in _ADVICE if re.search(words, said))
    address = config.get("bootstrap.servers", "no address")
    return Refused(
        KafkaError._AUTHENTICATION,
        f"Kafka at {address} refuses this client ({without_secrets(said, config)}): check {setting}",
    )


def _connected(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host.strip("[]"), int(port)), _PROBE_SECONDS)


def _in_tls(connection: socket.socket) -> ssl.SSLSocket:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(connection)


def _logins(address: str, tls: bool) -> str:
    """The SASL mechanisms that a port accepts for login; empty if it requires no login."""
    # A SaslHandshake, version 1, for a mechanism that doesn't exist: the response lists those that do.
    request = struct.pack(">hhih4s", 17, 1, 0, 4, b"none") + struct.pack(">h4s", 4, b"NONE")
    try:
        with _connected(address) as plain, _in_tls(plain) if tls else plain as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            answer = connection.recv(4_096)
        _, _, error, count = struct.unpack_from(">iihi", answer)
        names, at = [], 14
        for _ in range(count if error == _OTHER_MECHANISM else 0):
            [length] = struct.unpack_from(">h", answer, at)
            names.append(answer[at + 2 : at + 2 + length].decode())
            at += 2 + length
        return ", ".join(sorted(names))
    except (OSError, ValueError, struct.error):
        return ""


def _speaks_tls(address: str) -> bool:
    """Whether a port responds to the start of a TLS handshake."""
    try:
        with _connected(address) as connection, _in_tls(connection):
            return True
    except ssl.SSLError as error:
        return "ALERT" in str(error.reason)
    except (OSError, ValueError):
        return False
