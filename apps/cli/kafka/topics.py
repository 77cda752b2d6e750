"""`streamgauge kafka topics`: which topics there are, and what is in them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ....operators.rendering.names import amount
from ....operators.watching.terminal import write_json
from ...ending import at_once
from ...topics.known import SECONDS, kind_of, known_topics, not_there
from ..settings import Config, ConfigFile, Servers, kafka_settings

if TYPE_CHECKING:
    from ....operators.kafka.topics import Admin


@dataclass(frozen=True)
class TopicShown:
    """A topic; of each partition where it begins and ends, its leader and the replicas in sync."""

    name: str
    messages: int
    kind: str
    newest: str | None
    partitions: list[dict[str, Any]] = field(default_factory=list)


def topics(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="TOPIC", help="Show only these, with their partitions.")
    ] = None,
    bootstrap_servers: Servers = "localhost:9092",
    every: Annotated[bool, typer.Option("--all", help="Include Kafka's own topics.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per topic.")] = False,
    config: Config = None,
    config_file: ConfigFile = None,
) -> None:
    """List topics with partitions, messages, last write and contents.

    Messages are counted by offset, including those removed by compaction and transaction markers. Exits
    with 1 if no broker answers or a named topic doesn't exist.

        streamgauge kafka topics

        streamgauge kafka topics posts --bootstrap-servers broker-1:9092

        streamgauge kafka topics --json | jq 'select(.messages == 0).name'
    """
    with at_once():
        from ....operators.kafka.topics import TopicError, admin

    client = admin(kafka_settings(bootstrap_servers, config, config_file))
    known = known_topics(client)
    if missing := [name for name in names or () if name not in known]:
        raise TopicError(not_there(missing[0], known))
    chosen = names or sorted(name for name in known if every or not name.startswith("__"))
    shown = [_shown(client, name, known[name]) for name in chosen]
    if as_json:
        for one in shown:
            write_json(asdict(one))
    elif names:
        for one in shown:
            _print_partitions(one)
    else:
        _print_topics(shown, client.address)


def _shown(client: Admin, name: str, metadata: Any) -> TopicShown:
    from ....operators.kafka.topics import begin_offsets, end_offsets
    from ....operators.watermarks.position import Input

    places = [Input(name, partition) for partition in sorted(metadata.partitions)]
    begins, ends = begin_offsets(client, places, SECONDS), end_offsets(client, places, SECONDS)
    partitions = [
        {
            "partition": where.partition,
            "begin": begins[where],
            "end": ends[where],
            "leader": metadata.partitions[where.partition].leader,
            "replicas": list(metadata.partitions[where.partition].replicas),
            "in_sync": list(metadata.partitions[where.partition].isrs),
        }
        for where in places
    ]
    messages = sum(ends.values()) - sum(begins.values())
    return TopicShown(name, messages, kind_of(name), _newest(client, places), partitions)


def _newest(client: Admin, places: list[Any]) -> str | None:
    """The latest timestamp of its messages, in UTC; None without any, and of brokers that don't say."""
    from confluent_kafka import KafkaException, TopicPartition
    from confluent_kafka.admin import OffsetSpec

    from ...topics.decoded import written

    specs = {TopicPartition(*where): OffsetSpec.max_timestamp() for where in places}
    try:
        answers = client.list_offsets(specs, request_timeout=SECONDS).values()
        latest = max((answer.result(SECONDS).timestamp for answer in answers), default=-1)
    except (KafkaException, TimeoutError):
        return None
    return written(latest) if latest > 0 else None


def _print_topics(shown: list[TopicShown], address: str) -> None:
    from rich import box
    from rich.table import Table

    from ....operators.watching.console import TerminalConsole

    console = TerminalConsole()
    if not shown:
        console.print(f"no topics at {address}", highlight=False)
        return
    table = Table("topic", "partitions", "messages", "newest", "", header_style="bold", box=box.SIMPLE_HEAD)
    table.columns[1].justify = table.columns[2].justify = "right"
    table.columns[0].overflow = "fold"
    table.columns[3].no_wrap = True
    for one in shown:
        table.add_row(one.name, str(len(one.partitions)), f"{one.messages:,}", one.newest or "", one.kind)
    console.print(table)


def _print_partitions(one: TopicShown) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from ....operators.watching.console import TerminalConsole

    console = TerminalConsole()
    line = amount(one.messages, "message") + (f", the newest of {one.newest}" if one.newest else "")
    console.print(f"{one.name}: {line}{f' ({one.kind})' if one.kind else ''}", highlight=False)
    table = Table(
        "partition", "begin", "end", "messages", "leader", "in sync", header_style="bold", box=box.SIMPLE_HEAD
    )
    for column in table.columns:
        column.justify = "right"
    for row in one.partitions:
        behind = len(row["in_sync"]) < len(row["replicas"])
        synced = f"{len(row['in_sync'])} of {len(row['replicas'])}"
        table.add_row(
            str(row["partition"]),
            f"{row['begin']:,}",
            f"{row['end']:,}",
            f"{row['end'] - row['begin']:,}",
            "none" if row["leader"] < 0 else str(row["leader"]),
            Text(synced, "red" if behind else ""),
        )
    console.print(table)
