"""`streamgauge kafka groups`: groups of streams, seen from outside, and moved once their runs have ended."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ....operators.watching.terminal import write_json, write_line
from ..settings import Config, ConfigFile, Servers, kafka_settings

if TYPE_CHECKING:
    from ....operators.consumer.group.reset import Place
    from ....operators.consumer.group_overview import GroupListed, GroupOverview
    from ....operators.definition.stream import Stream

app = typer.Typer(
    name="groups",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="""List, show and move consumer groups of streams.

    `skip`, `reset` and `migrate` change from where the next run of a group continues. They are refused while
    the group has runs.

        # which groups are behind?
        streamgauge kafka groups list

        # what holds the windows of one open?
        streamgauge kafka groups show by-minute

        # skip messages that can't be processed, and keep open windows
        streamgauge kafka groups skip by-minute --offset latest

        # count again from the beginning
        streamgauge kafka groups reset by-minute --offset earliest

        # give a group a changed stream
        streamgauge kafka groups migrate by-minute streams:posts --dry-run
    """,
)

Group = Annotated[str, typer.Argument(metavar="GROUP", help="The group_id of its runs.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.callback()
def groups() -> None:
    """Consumer groups of streams."""


@app.command("list")
def list_(
    bootstrap_servers: Servers = "localhost:9092",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per group.")] = False,
    config: Config = None,
    config_file: ConfigFile = None,
) -> None:
    """List groups of streams: state, members, lag, topics, streams.

    A group of a stream is one that has a table topic. Its state is the brokers' word: `stable` while it has
    runs, `empty` after they have ended, `unknown` if its offsets have expired. Lag counts offsets that wait,
    those behind open transactions included.

        streamgauge kafka groups list

        streamgauge kafka groups list --json | jq 'select(.lag > 1000).group'
    """
    from ....operators.consumer.group_overview import list_groups

    settings = kafka_settings(bootstrap_servers, config, config_file)
    listed = list_groups(settings)
    if as_json:
        for one in listed:
            write_json(asdict(one))
    else:
        _print_groups(listed, settings["bootstrap.servers"])


@app.command()
def show(
    group: Group,
    bootstrap_servers: Servers = "localhost:9092",
    as_json: AsJson = False,
    config: Config = None,
    config_file: ConfigFile = None,
) -> None:
    """Show a group's members, lag by partition, watermark and open windows.

    It reads the group's table topic as a merger does, joins nothing and changes nothing. The watermark says
    up to which event time windows have closed, and which partition holds it there. An open transaction is
    named with its age: messages behind it can't be read before it ends. Times in JSON are microseconds since
    1970, and milliseconds for transactions.

        streamgauge kafka groups show by-minute

        streamgauge kafka groups show by-minute --json | jq '.partitions[] | select(.held_back > 0)'
    """
    from ....operators.consumer.group_overview import describe_group

    overview = describe_group(kafka_settings(bootstrap_servers, config, config_file), group)
    if as_json:
        write_json(asdict(overview))
    else:
        _print_group(overview)


@app.command()
def skip(
    group: Group,
    offset: Annotated[
        str | None,
        typer.Option(metavar="POSITION", help="latest, an offset, or a time: 2026-06-01T12:00, UTC."),
    ] = None,
    topic: Annotated[
        str | None,
        typer.Option(
            metavar="TOPIC", help="With --partition: skip in this topic; default: all of the group."
        ),
    ] = None,
    partition: Annotated[
        list[int] | None,
        typer.Option(metavar="NUMBER", help="Partition of --topic to skip in. Repeatable."),
    ] = None,
    bootstrap_servers: Servers = "localhost:9092",
    as_json: AsJson = False,
    config: Config = None,
    config_file: ConfigFile = None,
) -> None:
    """Skip messages on purpose, and keep open windows.

    This leaves out a message that can't be processed, for example. All runs of the group must have ended. The
    next run continues at POSITION, and the account counts the offsets in between as skipped. Without
    --offset, this accepts offsets that another program has set (kafka-consumer-groups, a console). A run
    refuses such offsets until then, because messages would be missing silently. To go back or to count again,
    use `streamgauge kafka groups reset`.

        streamgauge kafka groups skip by-minute --topic posts --partition 3 --offset 1200

        kafka-consumer-groups.sh --group by-minute --reset-offsets --to-latest --all-topics --execute …

        streamgauge kafka groups skip by-minute
    """
    from ....operators.consumer.group.skip import skip as skipping

    settings = kafka_settings(bootstrap_servers, config, config_file)
    address = settings.pop("bootstrap.servers")
    if (topic is None) != (not partition):
        raise ValueError("--topic and --partition go together: --topic posts --partition 3")
    chosen = [(topic, number) for number in partition or () if topic is not None]
    place = None if offset is None else _place(offset)
    _write_offsets(
        skipping(group, place, partitions=chosen, bootstrap_servers=address, config=settings), as_json
    )


@app.command()
def reset(
    group: Group,
    offset: Annotated[
        str,
        typer.Option(
            metavar="POSITION", help="earliest, latest, an offset, or a time: 2026-06-01T12:00, UTC."
        ),
    ],
    bootstrap_servers: Servers = "localhost:9092",
    topic: Annotated[
        list[str] | None,
        typer.Option(metavar="TOPIC", help="Input topic, if the group names none. Repeatable."),
    ] = None,
    as_json: AsJson = False,
    config: Config = None,
    config_file: ConfigFile = None,
) -> None:
    """Make a group count again from another position.

    All runs of the group must have ended. Open windows, and closed ones that were not emitted yet, are
    dropped. Emitted windows stay, and are emitted again if their rows are read again. To skip messages and
    keep open windows, use `streamgauge kafka groups skip`.

        streamgauge kafka groups reset by-minute --offset earliest

        streamgauge kafka groups reset by-minute --offset 2026-06-01T12:00 --bootstrap-servers broker-1:9092
    """
    from ....operators.consumer.group import reset as resetting

    settings = kafka_settings(bootstrap_servers, config, config_file)
    address = settings.pop("bootstrap.servers")
    report = resetting.reset(
        group, _place(offset), bootstrap_servers=address, config=settings, topics=topic or ()
    )
    _write_offsets(report, as_json)


@app.command()
def migrate(
    group: Group,
    stream: Annotated[
        str, typer.Argument(metavar="MODULE:STREAM", help="Module and name of the changed stream.")
    ],
    offset: Annotated[
        str | None,
        typer.Option(metavar="POSITION", help="Where to start, if fewer rows are filtered out now."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done.")] = False,
    as_json: AsJson = False,
) -> None:
    """Give a group a changed stream, once its old windows have closed.

    All runs of the group must have ended. The next run with the changed stream counts all later windows from
    their first row, so no window of either definition misses a row or counts one twice. Windows that were
    open belong to the new definition. MODULE:STREAM names a stream in a module of this folder or of the
    environment. If its source or its steps changed, rows that were filtered out before may count now; reading
    then begins with the first message, or at --offset, which must not be later than any row of an open
    window. The stream's own brokers and settings are used.

        streamgauge kafka groups migrate by-minute streams:posts --dry-run

        streamgauge kafka groups migrate by-minute streams:posts
    """
    from ....operators.consumer.migration import migrate as migrating

    place = None if offset is None else _place(offset)
    done = migrating(group, _stream(stream), start=place, dry_run=dry_run)
    if as_json:
        end = None if done.end is None else done.end.isoformat()
        starts = [
            {"topic": where.topic, "partition": where.partition, "offset": begins}
            for where, begins in sorted(done.starts.items())
        ]
        write_json({"changes": list(done.changes), "end": end, "starts": starts, "dry_run": dry_run})
        return
    for change in done.changes:
        write_line(change)
    ended = "no window has closed yet" if done.end is None else f"windows have closed up to {done.end}"
    write_line(f"{ended}; the changed stream {'would read' if dry_run else 'reads'} from:")
    _write_offsets(done.starts, as_json)


def _stream(text: str) -> Stream:
    """The stream of that name in a module. Raises `ValueError` if the module has none.

    >>> _stream("streams")
    Traceback (most recent call last):
    ValueError: the stream must be a module and a name in it, as in streams:posts, got 'streams'
    """
    import importlib
    import sys

    from ....operators.definition.stream import Stream

    module, _, name = text.partition(":")
    if not module or not name:
        raise ValueError(f"the stream must be a module and a name in it, as in streams:posts, got {text!r}")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        loaded = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0] and error.name != module:
            raise
        raise ValueError(
            f"there is no module {module!r} in this folder or in this environment ({sys.executable})"
        ) from None
    stream = getattr(loaded, name, None)
    if not isinstance(stream, Stream):
        raise ValueError(f"{text} must be a stream, got {type(stream).__name__}")
    return stream


def _place(text: str) -> Place:
    """A place as it is typed."""
    from ....operators.table.stored import moment

    if text in ("earliest", "latest"):
        return "earliest" if text == "earliest" else "latest"
    if text.isdigit():
        return int(text)
    time = moment(text)
    assert time is not None
    return time


def _write_offsets(offsets: Any, as_json: bool) -> None:
    rows = [(where.topic, where.partition, offset) for where, offset in sorted(offsets.items())]
    if as_json:
        write_json([{"topic": t, "partition": p, "offset": offset} for t, p, offset in rows])
        return
    for topic, partition, offset in rows:
        write_line(f"{topic}[{partition}]: {offset}")


def _print_groups(listed: list[GroupListed], address: str) -> None:
    from rich import box
    from rich.table import Table

    from ....operators.watching.console import TerminalConsole

    console = TerminalConsole()
    if not listed:
        console.print(f"no groups with a table topic at {address}", highlight=False)
        return
    table = Table(
        "group", "state", "members", "lag", "topics", "streams", header_style="bold", box=box.SIMPLE_HEAD
    )
    table.columns[2].justify = table.columns[3].justify = "right"
    table.columns[0].overflow = "fold"
    for one in listed:
        lag = "" if one.lag is None else f"{one.lag:,}"
        names = ", ".join(one.topics), ", ".join(one.streams)
        table.add_row(one.group, one.state, str(one.members), lag, *names)
    console.print(table)


def _print_group(one: GroupOverview) -> None:
    from rich import box
    from rich.table import Table

    from ....operators.rendering.names import amount
    from ....operators.watching.console import TerminalConsole
    from ...topics.decoded import written

    console = TerminalConsole()
    console.print(f"{one.group}: {one.state}, {amount(len(one.members), 'member')}", highlight=False)
    if one.members:
        table = Table("member", "host", "partitions", header_style="bold", box=box.SIMPLE_HEAD)
        for member in one.members:
            table.add_row(member.client_id, member.host, ", ".join(member.partitions) or "none")
        console.print(table)
    table = Table(
        "partition", "offset", "end", "lag", "held back", "member", header_style="bold", box=box.SIMPLE_HEAD
    )
    for column in table.columns[1:5]:
        column.justify = "right"
    for place in one.partitions:
        offset = "" if place.offset is None else f"{place.offset:,}"
        lag = "" if place.lag is None else f"{place.lag:,}"
        held = f"{place.held_back:,}" if place.held_back else ""
        table.add_row(f"{place.topic}[{place.partition}]", offset, f"{place.end:,}", lag, held, place.member)
    console.print(table)
    for stream in one.streams:
        mark = "none yet" if stream.watermark_us is None else written(stream.watermark_us // 1_000)
        name = f"{stream.name}: " if stream.name else ""
        counts = ", ".join(f"{n:,} {what.replace('_', '-')}" for what, n in stream.account.to_dict().items())
        lines = [f"{name}{counts}"]
        if stream.held_by:
            windows, groups = amount(stream.open_windows, "open window"), amount(stream.open_groups, "group")
            state = amount(stream.state_bytes, "byte")
            lines += [
                f"{name}watermark {mark}, held by {stream.held_by}",
                f"{name}{windows} of {groups}, {state} of state in {stream.table_topic}",
            ]
        for line in lines:
            console.print(line, highlight=False, soft_wrap=True)
    for warning in one.warnings:
        console.print(f"warning: {warning}", style="yellow", highlight=False, soft_wrap=True)
