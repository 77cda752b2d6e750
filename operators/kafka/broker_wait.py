"""Waiting for brokers that are unreachable when a program starts, as a running program does."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from confluent_kafka import KafkaException

from ..secrets import without_secrets
from .faults import Refused
from .topics import CHECK, Admin, TopicError

log = logging.getLogger("streamgauge.kafka")

_ANSWER_SECONDS = 3.0


def wait_for_brokers(
    client: Admin,
    seconds: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Return once a broker answers; logs it if that takes long.

    Raises `Refused` if brokers refuse the client, which waiting doesn't fix, and `TopicError` if none has
    answered after `seconds`; None waits for ever.
    """
    began = clock()
    limit = _ANSWER_SECONDS if seconds is None else min(_ANSWER_SECONDS, seconds)
    try:
        client.list_topics(timeout=limit)
        return
    except Refused:
        raise
    except KafkaException as error:
        why = without_secrets(error.args[0].str())
    how_long = "until they do" if seconds is None else f"for {seconds:g} s"
    log.warning("no broker answers at %s (%s); waiting %s; %s", client.address, why, how_long, CHECK)
    while seconds is None or clock() - began < seconds:
        try:
            client.list_topics(timeout=limit)
        except Refused:
            raise
        except KafkaException:
            continue
        log.warning("a broker answers at %s; continuing", client.address)
        return
    raise TopicError(f"no broker answered at {client.address} within {seconds:g} s: {why}; {CHECK}")
