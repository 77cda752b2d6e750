"""Settings whose passwords are never shown: neither in a repr, nor in a log line or an error.

>>> Settings({"security.protocol": "SASL_SSL", "sasl.username": "me", "sasl.password": "tr0ut"})
{'security.protocol': 'SASL_SSL', 'sasl.username': 'me', 'sasl.password': '…'}
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any

HIDDEN = "…"

_SECRET = re.compile(
    r"password|passphrase|secret|credential|jaas|token(?!\.endpoint)|user\.?info|kinit"
    r"|\.pem$|key$|oauthbearer\.(config|extensions)",
    re.IGNORECASE,
)
"""Names of settings with secret values, of librdkafka, Java and the schema registry."""

_LOGIN = re.compile(r"(?<=://)[^/\s]+(?=@)")
"""User and password in a URL."""
_LOGGED_IN = re.compile(r"(?<=auth_bytes=).+|(?<=Send: bytearray\().+", re.DOTALL)
"""The parts of kafka-python's log of a log-in that contain the password or a token, and of raw bytes."""
_QUOTED = re.compile(r"(?<=sasl\.oauthbearer\.config beginning at: ).+")
"""The part of a setting that librdkafka quotes if it can't parse it; it may contain a key."""


class Settings(dict[str, Any]):
    """A client's settings: a `dict` that shows no secret, wherever it is printed.

    Plain values are shown if their names don't suggest a secret; in URLs the user and the password are
    hidden. Functions and other objects may contain anything and are hidden as well.
    """

    def __repr__(self) -> str:
        return repr({name: _shown(name, value) for name, value in self.items()})


def without_secrets(text: str, config: Mapping[str, Any] = {}) -> str:
    """`text`, such as an error's, without the logins in URLs and without the secrets of `config`.

    >>> without_secrets("no token from https://me:tr0ut@login/token")
    'no token from https://…@login/token'
    >>> without_secrets("can't use tr0ut", {"ssl.key.password": "tr0ut"})
    "can't use …"
    """
    for name, value in config.items():
        if is_secret(name) and isinstance(value, (str, bytes)) and value:
            text = text.replace(value if isinstance(value, str) else value.decode(errors="replace"), HIDDEN)
    return _LOGGED_IN.sub(HIDDEN, _QUOTED.sub(HIDDEN, _LOGIN.sub(HIDDEN, text)))


def is_secret(name: str) -> bool:
    """Whether a setting with this name has a secret value.

    >>> is_secret("sasl.oauthbearer.client.secret"), is_secret("sasl.oauthbearer.token.endpoint.url")
    (True, False)
    """
    return _SECRET.search(name) is not None


class NoSecrets(logging.Filter):
    """Removes logins from a library's log."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Clean the record; it always passes."""
        record.msg, record.args = without_secrets(record.getMessage()), None
        return True


def _shown(name: str, value: Any) -> Any:
    if is_secret(name) or not (value is None or isinstance(value, (str, int, float))):
        return HIDDEN
    return without_secrets(value) if isinstance(value, str) else value
