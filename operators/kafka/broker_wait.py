"""Brokers that are unreachable when a program starts are waited for, as they are by one that runs."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from ..secrets import without_secrets
from .topics import Admin, TopicError

log = logging.getLogger("streamgauge.kafka")

_ANSWER_SECONDS = 3.0
_HERE = (KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError._SSL)
"""Who says this is not away, and waiting doesn't mend it."""


def wait_for_brokers(
    client: Admin,
    config: Mapping[str, Any],
    seconds: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Return once a broker answers, or refuses the client; says so if that takes long.

    Raises `TopicError` if none has after so many seconds; None waits for ever.
    """
    began = clock()
    limit = _ANSWER_SECONDS if seconds is None else min(_ANSWER_SECONDS, seconds)
    try:
        client.list_topics(timeout=limit)
        return
    except KafkaException as error:
        why = without_secrets(error.args[0].str())
    how_long = "until they do" if seconds is None else f"for {seconds:g} s"
    hint = "check bootstrap_servers, that it runs, and the security settings"
    log.warning("no broker answers at %s (%s); waiting %s; %s", client.address, why, how_long, hint)
    faults: list[KafkaError] = []
    admin = Admin({**config, "error_cb": faults.append})
    while seconds is None or clock() - began < seconds:
        try:
            admin.list_topics(timeout=limit)
        except KafkaException as error:
            faults.append(error.args[0])
            admin.poll(0)
        else:
            log.warning("a broker answers at %s; continuing", client.address)
            return
        if any(fault.code() in _HERE for fault in faults):
            return  # and the next request says what is wrong
    raise TopicError(f"no broker answered at {client.address} within {seconds:g} s: {why}; {hint}")
