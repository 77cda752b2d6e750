"""`streamgauge kafka start | status | stop`: a broker that stays after the command returns."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from filelock import FileLock
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..cache import cache_folder
from ..ending import in_order
from ..java import JavaError
from .broker import BrokerError, EmbeddedKafka
from .jars import KAFKA, JarsError
from .node import HOST

app = typer.Typer(
    name="kafka",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="""An embedded Kafka broker on this machine, to try things on.

    One real node on 127.0.0.1 that stays until it is stopped; a second one, for another project, takes a
    name of its own. Its jars are fetched once and kept.

        streamgauge kafka start --port 9092 --data ~/kafka

        streamgauge kafka start --name shop

        streamgauge kafka status

        streamgauge kafka stop --name shop
    """,
)
_out = Console()
_err = Console(stderr=True)


DEFAULT = "kafka"
"""The name of a broker that was given none."""


@dataclass(frozen=True, slots=True)
class Running:
    """A broker that `start` left running, as its state file says."""

    pid: int
    port: int
    folder: str
    keep: bool
    started: float
    name: str = DEFAULT

    @property
    def address(self) -> str:
        """For ``bootstrap.servers``."""
        return f"{HOST}:{self.port}"


def _valid(name: str | None) -> str | None:
    if name is not None and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name):
        raise typer.BadParameter("a name is made of letters, digits, dots, dashes and underscores")
    return name


@app.command()
def start(
    port: Annotated[
        int | None,
        typer.Option(metavar="PORT", min=1, max=65535, help="Port of 127.0.0.1; a free one by default."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            file_okay=False,
            help="Folder that keeps topics and messages; else they go with it.",
        ),
    ] = None,
    name: Annotated[
        str, typer.Option(metavar="NAME", callback=_valid, help="Its name, where several brokers are to run.")
    ] = DEFAULT,
) -> None:
    """Start a broker in the background and print its address.

    It takes some seconds, the first time half a minute more, and stays until `streamgauge kafka stop`. Only
    programs on this machine reach it, and it asks none of them for a password.

        streamgauge kafka start

        streamgauge kafka start --port 9092 --data ~/kafka

        streamgauge kafka start --name shop
    """
    with FileLock(_folder() / f"{name}.lock"):
        _start(port, data, name)


def _start(port: int | None, data: Path | None, name: str) -> None:
    folder = None if data is None else str(data.expanduser().resolve())
    for running in find_running():
        other = (port is not None and port != running.port) or (folder or running.folder) != running.folder
        if running.name == name and other:
            _fail(
                f"a broker is already running at {running.address} with its data in {running.folder}; "
                f"`streamgauge kafka stop{_option(running)}` ends it, --name starts another one beside it"
            )
        if running.name == name:
            _out.print(f"already running at [bold]{running.address}[/]")
            return
        if folder == running.folder:
            _fail(f"the broker {running.name!r} at {running.address} has its data in {folder}; name another")
    broker = EmbeddedKafka(port, data, detached=True)
    try:
        with in_order(), _err.status(f"starting Kafka {KAFKA}"):
            broker.start()
    except (BrokerError, JarsError, JavaError) as error:
        _fail(str(error))
    remember(Running(broker.pid, broker.port, str(broker.folder), data is not None, time.time(), name))
    _out.print(f"Kafka {KAFKA} serves at [bold]{broker.bootstrap_servers}[/]")


@app.command()
def status() -> None:
    """Show the brokers that run: address, folder, log, topics. Exit code 1 if there is none."""
    every = find_running()
    if not every:
        _out.print("no broker is running; `streamgauge kafka start` starts one")
        raise typer.Exit(1)
    silent = [running for running in every if not _show(running, named=len(every) > 1)]
    if silent:
        raise typer.Exit(1)


def _show(running: Running, named: bool) -> bool:
    """One broker on the screen; whether it answers."""
    about = Table.grid(padding=(0, 2))
    about.add_column()
    about.add_column(overflow="fold")  # a path is shown whole
    if named or running.name != DEFAULT:
        about.add_row("name", f"[bold]{running.name}[/]")
    about.add_row("address", f"[bold]{running.address}[/]")
    about.add_row("process", f"{running.pid}, for {_span(time.time() - running.started)}")
    about.add_row("data", f"{running.folder} ({'kept' if running.keep else 'thrown away at the end'})")
    about.add_row("log", f"{running.folder}/broker.log")
    _out.print(about)
    topics = _topics(running.address)
    if topics is None:
        _out.print("[red]it doesn't answer[/]; look into its log")
    elif topics:
        table = Table("topic", "partitions", "messages", title_justify="left")
        table.columns[1].justify = table.columns[2].justify = "right"
        for name, partitions, messages in topics:
            table.add_row(name, str(partitions), f"{messages:,}")
        _out.print(table)
    if named:
        _out.print()
    return topics is not None


@app.command()
def stop(
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", callback=_valid, help="Which one, where several brokers run."),
    ] = None,
) -> None:
    """Stop the broker; what was written stays if it was started with `--data`.

    streamgauge kafka stop

    streamgauge kafka stop --name shop
    """
    every = find_running()
    chosen = [running for running in every if running.name == (name or running.name)]
    names = ", ".join(running.name for running in every)
    if not chosen:
        which = f" named {name} is running; there are: {names}" if every else " is running"
        _out.print(f"no broker{which}")
        return
    if len(chosen) > 1:
        _fail(f"several brokers are running: {names}; say which one, as in `--name {every[0].name}`")
    _end(chosen[0])


def _end(running: Running) -> None:
    os.kill(running.pid, signal.SIGTERM if running.keep else signal.SIGKILL)
    deadline = time.monotonic() + 10
    while _is_broker(running.pid, running.folder):
        if time.monotonic() > deadline:
            os.kill(running.pid, signal.SIGKILL)
        time.sleep(0.05)
    _forget(running)
    _out.print(f"stopped the broker at {running.address}")


def find_running() -> list[Running]:
    """The brokers that `start` left running, by name; state files whose broker is gone are cleared away."""
    found = []
    for file in sorted(_folder().glob("*.json")):
        try:
            running = Running(**json.loads(file.read_text()))
        except (OSError, ValueError, TypeError):
            continue
        if _is_broker(running.pid, running.folder):
            found.append(running)
        else:
            _forget(running)
    return found


def remember(running: Running) -> None:
    """Make a detached broker one that `status` shows and `stop` ends."""
    file = _state_file(running)
    part = file.with_suffix(".part")
    part.write_text(json.dumps(asdict(running)))
    part.replace(file)


def _forget(running: Running) -> None:
    if not running.keep:
        shutil.rmtree(running.folder, ignore_errors=True)
    _state_file(running).unlink(missing_ok=True)


def _folder() -> Path:
    found = cache_folder() / "kafka" / "running"
    found.mkdir(parents=True, exist_ok=True)
    return found


def _state_file(running: Running) -> Path:
    return _folder() / f"{running.name}.json"


def _option(running: Running) -> str:
    return "" if running.name == DEFAULT else f" --name {running.name}"


def _is_broker(pid: int, folder: str) -> bool:
    """Whether that process is the broker of that folder, not another one that got its number since."""
    if Path("/proc/self/cmdline").exists():
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            return False
    else:
        said = subprocess.run(["ps", "-ww", "-o", "command=", "-p", str(pid)], capture_output=True, text=True)
        command = said.stdout
    return f"kafka.Kafka {folder}" in command


def _topics(address: str) -> list[tuple[str, int, int]] | None:
    """Name, partitions and messages of every topic but Kafka's own; None if the broker doesn't answer."""
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


def _fail(message: str) -> None:
    _err.print(f"[red]error:[/] {escape(message)}", highlight=False, soft_wrap=True)
    raise typer.Exit(1)


if __name__ == "__main__":
    app()
