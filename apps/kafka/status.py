"""A running cluster on the screen: addresses, folders, dead brokers, topics."""

from __future__ import annotations

import time

from rich.console import Console
from rich.table import Table

from .running import Running


def show(running: Running, console: Console, named: bool) -> bool:
    """Show a cluster, its name as well if `named`; gives whether all of its brokers live and it answers."""
    about = Table.grid(padding=(0, 2))
    about.add_column()
    about.add_column(overflow="fold")  # a path is shown whole
    if named:
        about.add_row("name", f"[bold]{running.name}[/]")
    about.add_row("address", f"[bold]{running.address}[/]")
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
            f"[red]broker {number} at {broker.address} is dead[/]; its last words are in "
            f"{broker.folder}/broker.log, and `streamgauge kafka start{running.option}` starts it again"
        )
    topics = _topics(running.address)
    if topics is None:
        console.print("[red]it doesn't answer[/]; look into its log")
    elif topics:
        table = Table("topic", "partitions", "messages", title_justify="left")
        table.columns[1].justify = table.columns[2].justify = "right"
        for name, partitions, messages in topics:
            table.add_row(name, str(partitions), f"{messages:,}")
        console.print(table)
    return topics is not None and not dead


def _topics(address: str) -> list[tuple[str, int, int]] | None:
    """Name, partitions and messages of every topic but Kafka's own; None if no broker answers."""
    from confluent_kafka import KafkaException, TopicPartition
    from confluent_kafka.admin import AdminClient, OffsetSpec

    # The client's own log lines would spoil the screen.
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    try:
        known = admin.list_topics(timeout=5).topics
        found = []
        for name in sorted(name for name in known if not name.startswith("__")):
            every = [TopicPartition(name, p) for p in known[name].partitions]
            last, first = (
                [f.result(5).offset for f in admin.list_offsets(dict.fromkeys(every, spec)).values()]
                for spec in (OffsetSpec.latest(), OffsetSpec.earliest())
            )
            found.append((name, len(every), sum(last) - sum(first)))
        return found
    except KafkaException:
        return None


def _span(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return (
        f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
    )
