"""Messages a second from Kafka to three sketches: our consumer against what one would write without it.

3 M JSON messages, 72 bytes a record, lz4, in 4 partitions, read from earliest to latest into a HyperLogLog of
users, a KLL of prices and the frequent tags; the broker runs on the same machine. Peers: confluent-kafka with
the `datasketches` package, a message at a time as their pages show (librdkafka's defaults, and tuned), the
fastest one would write with Polars, Quix Streams, in an environment of its own because it pins an older
confluent-kafka, and ourselves, reading message by message: the reader that used librdkafka's bulk calls by
ctypes, against which 1.5 times was required, is deleted. Each figure is the median of three runs, peers and
ours taking turns.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from streamgauge.apps.dev.kafka.broker import EmbeddedKafka

from .topic import BY_CONSUME, MESSAGES, filled, sketched

RUNS = 3
PEERS = Path(__file__).parent / "peers"
QUIX_HOME = Path(sys.prefix) / "quix"


def ours(bootstrap: str, topic: str, config: Mapping[str, Any] = {}) -> float:
    """Messages a second of our consumer, from the call to the closed windows."""
    stream = sketched(bootstrap, topic, config)
    start = time.perf_counter()
    run = stream.run(until="latest")
    assert run.account.counted == MESSAGES, run.account
    return MESSAGES / (time.perf_counter() - start)


def peer(python: str, script: str, *arguments: object) -> float:
    """Messages a second that a peer's script prints, without its start-up."""
    command = [python, str(PEERS / script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    return float(done.stdout.split()[-1])


def quix_python() -> str:
    """The interpreter of Quix Streams' own environment, made on first use."""
    python = QUIX_HOME / "bin" / "python"
    if not python.exists():
        venv.create(QUIX_HOME, with_pip=True)
        packages = ["quixstreams[parquet]", "datasketches"]
        subprocess.run([python, "-m", "pip", "install", "-q", *packages], check=True)
    return str(python)


def main() -> list[dict[str, Any]]:
    quix = quix_python()
    with EmbeddedKafka() as broker:
        at = broker.bootstrap_servers
        topic = filled(broker, "posts", MESSAGES)
        sides: dict[str, tuple[Callable[[], float], str]] = {
            "ours": (lambda: ours(at, topic), ""),
            "ourselves, by consume()": (lambda: ours(at, topic, BY_CONSUME), "≥ 1.5"),
            "confluent-kafka + datasketches, defaults": (
                lambda: peer(sys.executable, "plain_confluent.py", at, topic, MESSAGES // 5, "defaults"),
                "",
            ),
            "confluent-kafka + datasketches, tuned": (
                lambda: peer(sys.executable, "plain_confluent.py", at, topic, MESSAGES // 5, "tuned"),
                "≥ 6",
            ),
            "confluent-kafka + Polars + datasketches, tuned": (
                lambda: peer(sys.executable, "plain_polars.py", at, topic, MESSAGES),
                "≥ 4",
            ),
            "Quix Streams": (lambda: peer(quix, "quix_streams.py", at, topic, MESSAGES // 10), "≥ 12"),
        }
        rates: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(RUNS):
            for name, (measure, _target) in sides.items():
                rates[name].append(measure())
    median = {name: statistics.median(result) for name, result in rates.items()}
    return [
        {
            "claim": f"Kafka → three sketches, against {name}",
            "ours": f"{median['ours'] / 1e6:.2f} M/s",
            "peer": f"{median[name] / 1e6:.2f} M/s",
            "ratio": f"{median['ours'] / median[name]:.1f}",
            "target": target or "report",
        }
        for name, (_, target) in sides.items()
        if name != "ours"
    ]
