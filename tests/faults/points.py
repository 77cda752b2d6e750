"""The points around a checkpoint at which a member of a group can be struck; the product has none of this.

`watch` replaces, in this process, what the consumer calls at these points. Each of a delivery's ways passes
them in its own order: one that commits first has its offsets before its deltas.

| point | what was done | what was not |
|---|---|---|
| before the deltas | a transaction begun, if there is one | no delta sent |
| after the deltas | all handed to the client, which may have sent some | none acknowledged |
| before the offsets | all deltas acknowledged by the brokers | positions |
| after the offsets | positions sent (within a transaction) or committed | the rest of the checkpoint |
| after the commit | everything | the worker doesn't know it yet |
| taking up partitions | positions looked up | nothing read |
| restoring the merger | its place found in the table topic | nothing read |
| before the merger's place | its snapshot written | the group's offset |
| after handing over | a window given to its callback | the merger's place |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from confluent_kafka import Producer

from streamgauge.operators.consumer.group.membership import Membership
from streamgauge.operators.consumer.merge import checkpoint_store
from streamgauge.operators.consumer.merge.merger import Merger
from streamgauge.operators.consumer.worker import delivery, partition_recovery
from streamgauge.operators.kafka import produce

CHECKPOINT = (
    "before the deltas",
    "after the deltas",
    "before the offsets",
    "after the offsets",
    "after the commit",
)
RESTORING = ("taking up partitions", "restoring the merger")
MERGING = ("before the merger's place", "after handing over")
POINTS = (*CHECKPOINT, *RESTORING, *MERGING)


def watch(table_topic: Callable[[str], bool], reached: Callable[[str], None]) -> None:
    """Call `reached` with the name of each point that this process comes to."""
    sent = False

    class Watched(Producer):
        """The workers' producer."""

        def produce(self, topic: str, *args: Any, **more: Any) -> None:
            nonlocal sent
            if table_topic(topic) and not sent:
                sent = True
                reached("before the deltas")
            super().produce(topic, *args, **more)

        def flush(self, *args: Any) -> int:
            nonlocal sent
            if not sent:
                return super().flush(*args)
            reached("after the deltas")
            left = super().flush(*args)
            sent = left > 0
            return left

        def poll(self, *args: Any) -> int:
            # With transactions, the messages are waited for by polling.
            if sent and len(self):
                reached("after the deltas")
            return super().poll(*args)

        def send_offsets_to_transaction(self, *args: Any) -> None:
            nonlocal sent
            sent = False
            reached("before the offsets")
            super().send_offsets_to_transaction(*args)
            reached("after the offsets")

    # With transactions and without.
    delivery.Producer = produce.Producer = Watched  # type: ignore[misc]
    _around(Membership, "commit", reached, "before the offsets", "after the offsets")
    for way in _ways():
        _around(way, "deliver", reached, "", "after the commit")
    _around(partition_recovery.PartitionRecovery, "places", reached, "", "taking up partitions")
    _around(checkpoint_store.CheckpointStore, "find", reached, "", "restoring the merger")
    _around(checkpoint_store.CheckpointStore, "_write", reached, "", "before the merger's place")
    _around(Merger, "mark_emitted", reached, "after handing over", "")


def _ways() -> list[type]:
    """The classes that deliver."""
    result = [value for value in vars(delivery).values() if isinstance(value, type)]
    return [way for way in result if "deliver" in vars(way) and way is not delivery.Delivery]


def _around(owner: type, name: str, reached: Callable[[str], None], before: str, after: str) -> None:
    call = getattr(owner, name)

    def wrapped(*args: Any, **more: Any) -> Any:
        if before:
            reached(before)
        result = call(*args, **more)
        if after:
            reached(after)
        return result

    setattr(owner, name, wrapped)
