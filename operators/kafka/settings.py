"""Validation of a user's Kafka settings when a stream is defined, not when a client fails on them.

librdkafka itself reports which names and values it accepts, so each version is checked by its own rules.
"""

from __future__ import annotations

import ctypes as c
import os
import re
import tempfile
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from typing import Any

from ..secrets import without_secrets
from .client_config import as_text
from .fixed_settings import check_fixed
from .librdkafka import library

_UNKNOWN = -2
# Settings of confluent-kafka, not librdkafka; checking a plug-in library would load it.
_UNCHECKED = ("logger", "plugin.library.paths", "default.topic.config")


def check_settings(config: Mapping[str, Any], obeyed: Collection[str] = ()) -> None:
    """Raise `ValueError` for the first setting that librdkafka doesn't know or whose value it refuses.

    Settings that a stream controls (`fixed_settings`) are refused as well, except those in `obeyed`. If the
    library can't be queried, its clients report errors when they start.

    >>> check_settings({"security.protocol": "SASL_SSL", "sasl.usernmae": "me"})
    Traceback (most recent call last):
    ValueError: there is no Kafka setting "sasl.usernmae"; did you mean "sasl.username"?
    """
    rd = library()
    words = c.create_string_buffer(512)
    for name, value in config.items():
        if not isinstance(name, str):
            raise ValueError(f'names of Kafka settings must be strings such as "client.id", got {name!r}')
        if callable(value) or name in _UNCHECKED or rd is None:
            continue
        conf = rd.rd_kafka_conf_new()
        said = rd.rd_kafka_conf_set(conf, name.encode(), as_text(value).encode(), words, len(words))
        rd.rd_kafka_conf_destroy(conf)
        if said == _UNKNOWN:
            raise ValueError(f'there is no Kafka setting "{name}"{_meant(name)}')
        if said != 0:
            reason = without_secrets(words.value.decode(errors="replace"), config)
            raise ValueError(f'the Kafka setting "{name}": {reason}')
    check_fixed({name: as_text(value) for name, value in config.items()}, obeyed)


def servers(given: str | Sequence[str]) -> str:
    """The brokers' addresses in librdkafka's notation, from a string or a list.

    >>> servers(["one:9092", "two:9092"])
    'one:9092,two:9092'
    """
    listed = given.split(",") if isinstance(given, str) else given
    if not isinstance(listed, (list, tuple)) or not all(isinstance(one, str) for one in listed):
        raise TypeError(f'bootstrap_servers must be "host:port" or a list of these, got {given!r}')
    if not listed or not all(one.strip() for one in listed):
        raise ValueError(f'bootstrap_servers must name at least one broker as "host:port", got {given!r}')
    return ",".join(one.strip() for one in listed)


def _meant(name: str) -> str:
    near = get_close_matches(name.lower().replace("_", "."), _names(), 1, 0.7)
    return f'; did you mean "{near[0]}"?' if near else "; librdkafka's CONFIGURATION.md lists all"


@cache
def _names() -> list[str]:
    """The names of all settings, from the table that the library prints; empty if it can't be loaded."""
    rd = library()
    try:
        libc, show = c.CDLL(None), rd.rd_kafka_conf_properties_show  # type: ignore[union-attr]
        libc.fdopen.restype, libc.fdopen.argtypes = c.c_void_p, [c.c_int, c.c_char_p]
        libc.fclose.argtypes = show.argtypes = [c.c_void_p]
    except (TypeError, AttributeError, OSError):
        return []
    with tempfile.TemporaryFile() as file:
        stream = libc.fdopen(os.dup(file.fileno()), b"w")
        show(stream)
        libc.fclose(stream)
        file.seek(0)
        return re.findall(r"^([a-z0-9_.]+) +\|", file.read().decode(errors="replace"), re.M)
