"""What each delivery costs: messages a second of one worker at a checkpoint a second.

12 M messages as in `kafka_to_sketches` go through the same stream under each `delivery`, broker on
the same machine, taking turns; each figure is the median of five rounds' ratios to "at_least_once" in the
same round, so that a machine that is slow for a while is so for all. Required: "exactly_once" at most 15 %
slower.
"""

from __future__ import annotations

import statistics
import time
from typing import Any, get_args

from streamgauge.apps.dev.kafka.broker import EmbeddedKafka
from streamgauge.operators.consumer.options import DeliveryName

from .topic import MESSAGES, filled, sketched

SENT = 4 * MESSAGES
"""So many that a run lasts many checkpoints."""
ROUNDS = 5
BASE: DeliveryName = "at_least_once"


def seconds(bootstrap: str, topic: str, delivery: DeliveryName) -> float:
    """How long a run takes for all messages, from the call to the closed windows."""
    stream = sketched(bootstrap, topic)
    start = time.perf_counter()
    run = stream.run(until="latest", delivery=delivery, checkpoint_seconds=1.0)
    assert run.account.counted == SENT, run.account
    return time.perf_counter() - start


def main() -> list[dict[str, Any]]:
    names: tuple[DeliveryName, ...] = get_args(DeliveryName)
    elapsed: dict[DeliveryName, list[float]] = {name: [] for name in names}
    with EmbeddedKafka() as broker:
        topic = filled(broker, "posts", SENT)
        seconds(broker.bootstrap_servers, topic, BASE)  # compiles
        for _ in range(ROUNDS):
            for name in names:
                elapsed[name].append(seconds(broker.bootstrap_servers, topic, name))
    slower = {
        name: statistics.median(own / base for own, base in zip(elapsed[name], elapsed[BASE], strict=True))
        for name in names
    }
    return [
        {
            "claim": f"{name} against {BASE}, a checkpoint a second",
            "ours": f"{SENT / statistics.median(elapsed[name]) / 1e6:.2f} M/s",
            "peer": f"{SENT / statistics.median(elapsed[BASE]) / 1e6:.2f} M/s",
            "ratio": f"{100 * (slower[name] - 1):+.1f} % time",
            "target": "≤ 15 %" if name == "exactly_once" else "report",
        }
        for name in names
        if name != BASE
    ]
