"""Show a running cluster: addresses, folders, dead brokers, topics."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .running_clusters import Running

_ANSWER_SECONDS = 20.0
"""The time within which a busy broker answers, and a cluster replaces dead leaders."""


def show(running: Running, console: Console, named: bool) -> bool:
    """Show a cluster, with its name if `named`; return whether all brokers are alive and it answers."""
    about = Table.grid(padding=(0, 2))
    about.add_column()
    about.add_column(overflow="fold")  # show paths in full
    if named:
        about.add_row("name", Text(running.name, "bold"))
    about.add_row("address", Text(running.address, "bold"))
    pids = ", ".join(str(broker.pid) for broker in running.brokers if broker.alive)
    about.add_row("process", f"{pids}, for {_span(time.time() - running.started)}")
    about.add_row("data", f"{running.folder} ({'kept' if running.keep else 'thrown away at the end'})")
    if len(running.brokers) == 1:
        about.add_row("log", f"{running.folder}/broker.log")
    else:
        about.add_row("logs", f"{running.folder}/1…{len(running.brokers)}/broker.log")
    console.print(about)
    dead = [(n, broker) for n, broker in enumerate(running.brokers, 1) if not broker.alive]
    for number, broker in dead:
        console.print(
            Text.assemble(
                (f"broker {number} at {broker.address} is dead", "red"),
                f"; its last words are in {broker.folder}/broker.log, and "
                f"`streamgauge kafka start{running.option}` starts it again",
            )
        )
    topics = _topics(running.address)
    if topics is None:
        console.print(Text.assemble(("it doesn't answer", "red"), "; look into its log"))
    elif topics:
        table = Table("topic", "partitions", "messages", header_style="bold", box=box.SIMPLE_HEAD)
        table.columns[1].justify = table.columns[2].justify = "right"
        for name, partitions, messages in topics:
            table.add_row(name, str(partitions), f"{messages:,}")
        console.print(table)
    return topics is not None and not dead


def _topics(address: str) -> list[tuple[str, int, int]] | None:
    """Return the name, partitions and messages of all topics except Kafka's own; None if no broker
    answers."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    deadline = time.monotonic() + _ANSWER_SECONDS
    while True:
        # A request to a dead leader keeps a core busy until it times out; a new client gets the
        # current leaders. Its log lines would disturb the screen.
        admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
        try:
            known = admin.list_topics(timeout=5).topics
            return [
                (name, len(about.partitions), _messages(admin, name, about.partitions))
                for name, about in sorted(known.items())
                if not name.startswith("__")
            ]
        except KafkaException:
            if time.monotonic() > deadline:
                return None


def _messages(admin: Any, topic: str, partitions: Iterable[int]) -> int:
    """Return the number of messages in a topic."""
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import OffsetSpec

    every = [TopicPartition(topic, partition) for partition in partitions]
    last, first = (
        sum(
            future.result().offset
            for future in admin.list_offsets(dict.fromkeys(every, spec), request_timeout=3.0).values()
        )
        for spec in (OffsetSpec.latest(), OffsetSpec.earliest())
    )
    return last - first


def _span(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return (
        f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
    )
