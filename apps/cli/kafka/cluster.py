"""`streamgauge kafka start | status | stop`: brokers that stay after the command returns."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.text import Text

from ....operators.java import JavaError
from ....operators.watching.console import TerminalConsole
from ...dev.kafka.running_clusters import (
    DEFAULT,
    Running,
    RunningBroker,
    find_running,
    forget,
    locked,
    remember,
)
from ...dev.kafka.status import show
from ...ending import at_once, in_order

_out = TerminalConsole()
_err = TerminalConsole(stderr=True)

_STOP_SECONDS = 10.0


def _valid(name: str | None) -> str | None:
    if name is not None and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name):
        raise typer.BadParameter("a name is made of letters, digits, dots, dashes and underscores")
    return name


def start(
    port: Annotated[
        int | None,
        typer.Option(
            metavar="PORT",
            min=1,
            max=65535,
            help="Port on 127.0.0.1; further brokers take the next ones. Default: free ports.",
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            file_okay=False,
            help="Folder to keep topics and messages after the broker stops.",
        ),
    ] = None,
    name: Annotated[
        str, typer.Option(metavar="NAME", callback=_valid, help="Name, to run several.")
    ] = DEFAULT,
    brokers: Annotated[
        int | None,
        typer.Option(metavar="NUMBER", min=1, max=9, help="Number of brokers; default: 1, or the folder's."),
    ] = None,
) -> None:
    """Start one broker or several in the background and print their addresses.

    This takes a few seconds, and half a minute more the first time, when Kafka's jars are downloaded. The
    brokers run until `streamgauge kafka stop`. Only programs on this machine can reach them, and they need no
    password. With three brokers, topics have a replica on each by default, and ``acks=all`` waits for two of
    them. If the cluster is already running, brokers that died are restarted.

        streamgauge kafka start

        streamgauge kafka start --port 9092 --data ~/kafka

        streamgauge kafka start --name shop --brokers 3
    """
    with locked(name):
        _start(port, data, name, brokers)


def _start(port: int | None, data: Path | None, name: str, brokers: int | None) -> None:
    with at_once():
        from ...dev.kafka.broker import BrokerError, EmbeddedKafka
        from ...dev.kafka.cluster import EmbeddedCluster, kept_brokers
        from ...dev.kafka.jars import KAFKA, JarsError

    folder = None if data is None else data.expanduser().resolve()
    for running in find_running():
        if running.name == name:
            return _go_on(running, port, folder, brokers)
        if str(folder) == running.folder:
            _fail(f"the broker {running.name!r} at {running.address} has its data in {folder}; name another")
    kept = None if folder is None else kept_brokers(folder)
    count = brokers or kept or 1
    try:
        with in_order(), _err.status(f"starting Kafka {KAFKA}"):
            if count == 1 and kept in (None, 1):
                alone = EmbeddedKafka(port, folder, detached=True).start()
                nodes, where = [alone], alone.folder
            else:
                cluster = EmbeddedCluster(count, port, folder, detached=True).start()
                nodes, where = cluster.nodes, cluster.folder
    except (BrokerError, JarsError, JavaError) as error:
        _fail(str(error))
    clusters = tuple(RunningBroker(own.pid, own.port, str(own.folder)) for own in nodes)
    running = Running(clusters, str(where), folder is not None, time.time(), name)
    remember(running)
    _out.print(_at(f"Kafka {KAFKA} serves", running.address), soft_wrap=True)


def _go_on(running: Running, port: int | None, folder: Path | None, brokers: int | None) -> None:
    """Leave a cluster running if it is what is requested, with those of its brokers that had died."""
    from ...dev.kafka.broker import BrokerError
    from ...dev.kafka.cluster import node
    from ...dev.kafka.jars import JarsError

    other = port not in (None, running.port) or str(folder or running.folder) != running.folder
    if other or brokers not in (None, len(running.brokers)):
        count = len(running.brokers)
        what = "a broker is" if count == 1 else f"a cluster of {count} brokers is"
        _fail(
            f"{what} already running at {running.address} with its data in {running.folder}; "
            f"`streamgauge kafka stop{running.option}` ends it, --name starts another one beside it"
        )
    dead = [number for number, broker in enumerate(running.brokers) if not broker.alive]
    nodes = list(running.brokers)
    for number in dead:
        own = node(Path(running.folder), number)
        try:
            with in_order(), _err.status(f"starting broker {number + 1} again"):
                own.start()
        except (BrokerError, JarsError, JavaError) as error:
            _fail(f"broker {number + 1} did not start again: {error}")
        nodes[number] = RunningBroker(own.pid, own.port, str(own.folder))
        remember(Running(tuple(nodes), running.folder, running.keep, running.started, running.name))
        _out.print(_at(f"broker {number + 1} serves again", own.bootstrap_servers))
    if not dead:
        _out.print(_at("already running", running.address), soft_wrap=True)


def status(
    name: Annotated[
        str | None, typer.Option(metavar="NAME", callback=_valid, help="Name of the cluster; default: all.")
    ] = None,
) -> None:
    """Show running clusters: addresses, folders, logs, topics, dead brokers.

    This is about brokers that `streamgauge kafka start` started on this machine. The exit code is 1 if none
    is running, or if a broker is dead.

        streamgauge kafka status
    """
    every = find_running()
    chosen = [running for running in every if name in (None, running.name)]
    if not chosen:
        _out.print(_nothing(name, every) + "; `streamgauge kafka start` starts one")
        raise typer.Exit(1)
    well = []
    for number, running in enumerate(chosen):
        if number:
            _out.print()
        well.append(show(running, _out, named=len(every) > 1 or running.name != DEFAULT))
    if not all(well):
        raise typer.Exit(1)


def stop(
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", callback=_valid, help="Name of the cluster, if several run."),
    ] = None,
) -> None:
    """Stop a cluster; its data stays if it was started with `--data`.

    This is about brokers that `streamgauge kafka start` started on this machine. Without --data, their topics
    are removed.

        streamgauge kafka stop

        streamgauge kafka stop --name shop
    """
    every = find_running()
    chosen = [running for running in every if name in (None, running.name)]
    if not chosen:
        _out.print(_nothing(name, every))
        return
    if len(chosen) > 1:
        names = ", ".join(running.name for running in every)
        _fail(f"several brokers are running: {names}; say which one, as in `--name {every[0].name}`")
    with locked(chosen[0].name):
        _end(chosen[0])


def _nothing(name: str | None, every: list[Running]) -> str:
    names = ", ".join(running.name for running in every)
    which = f" named {name} is running" if name else " is running"
    return f"no broker{which}" + (f"; there are: {names}" if every else "")


def _end(running: Running) -> None:
    for broker in running.brokers:
        if broker.alive:
            os.kill(broker.pid, signal.SIGTERM if running.keep else signal.SIGKILL)
    deadline = time.monotonic() + _STOP_SECONDS
    while running.alive:
        if time.monotonic() > deadline:
            for broker in running.brokers:
                if broker.alive:
                    os.kill(broker.pid, signal.SIGKILL)
        time.sleep(0.05)
    forget(running)
    what = "the broker" if len(running.brokers) == 1 else f"the {len(running.brokers)} brokers"
    _out.print(f"stopped {what} at {running.address}", soft_wrap=True)


def _fail(message: str) -> NoReturn:
    _err.print(Text.assemble(("error:", "red"), f" {message}"), soft_wrap=True)
    raise typer.Exit(1)


def _at(said: str, address: str) -> Text:
    return Text.assemble(f"{said} at ", (address, "bold"))
