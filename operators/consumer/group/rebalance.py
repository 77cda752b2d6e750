"""Assigning and revoking partitions according to the group's protocol.

With the older protocols a rebalance lists all of a member's partitions; with cooperative ones, and if the
brokers assign (``group.protocol=consumer``, KIP-848), only those that are added or removed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition

T = TypeVar("T")


class Rebalance:
    """How members with these settings take part in rebalances."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        brokers_assign = str(config.get("group.protocol", "")).lower() == "consumer"
        self.incremental = brokers_assign or "cooperative" in str(
            config.get("partition.assignment.strategy", "")
        )

    def assign(self, consumer: Consumer, partitions: list[KafkaPartition]) -> None:
        """Assign newly assigned partitions to the consumer."""
        (consumer.incremental_assign if self.incremental else consumer.assign)(partitions)

    def unassign(self, consumer: Consumer, partitions: list[KafkaPartition]) -> None:
        """Give up partitions that were revoked or lost."""
        if self.incremental:
            consumer.incremental_unassign(partitions)
        else:
            consumer.unassign()


def as_exception(ask: Callable[[], T]) -> T:
    """Call the client library, which raises a plain `KafkaError` during a rebalance.

    That is not an exception, so only a bare ``except`` sees it. Here it becomes a `KafkaException`.
    """
    try:
        return ask()
    except BaseException:
        raise
    except:  # noqa: E722
        raised: Any = sys.exc_info()[1]
    # Not raised within the handler, where its context would be something that is not an exception.
    raise KafkaException(raised)
