"""The trending demo: broker, replay, engine, live view, summary. Nothing is left running."""

from __future__ import annotations

import json
import logging
import os
import time
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from ...operators.definition.stream import Stream
from ..ending import in_order
from ..java import find_java
from ..kafka.broker import BrokerError, EmbeddedKafka
from ..kafka.jars import KAFKA, kafka_jars
from ..kafka.running import Running, RunningBroker, find_running, remember
from ..replay.batch import Source
from ..replay.generated import Generated
from ..replay.load import Load
from ..replay.process import Replay
from ..replay.recorded import Recording
from ..stage import stage
from .answers import windows
from .engines import ENGINES, Engine
from .exact import Exact, read_exact
from .kernels import ready
from .stream import TOPIC, trending
from .summary import Summary
from .watch import watch

PARTITIONS = 4
_KEPT = "demo"
"""The name of the broker that `--keep` leaves up."""


@dataclass(frozen=True)
class Options:
    """What the command line asks for; see `apps.trending.command`."""

    engine: str = "spark"
    seconds: float = 30.0
    rate: float = 20_000.0
    input: Path | None = None
    speed: float = 1.0
    seed: int = 0
    as_json: bool = False
    keep: bool = False


def run(options: Options) -> None:
    """Run the demo and print its summary.

    However it ends, all it started is stopped; only with `keep`, and after a whole run, the broker stays.
    Raises `JavaError`, `JarsError`, `BrokerError`, `RecordingError`, `EngineError`, `ReplayError`
    and `SparkMissingError`, whose messages say what to do.
    """
    # A copy of standard error: engines may send the original elsewhere than to the screen.
    console = Console(file=os.fdopen(os.dup(2), "w"))
    logging.getLogger().addHandler(logging.NullHandler())
    recording = None
    # What can't work is said before anything is started.
    ENGINES[options.engine].check()
    if options.input is not None:
        recording = Recording.open(options.input, options.speed, options.seconds)
    try:
        with in_order() as broker:
            kafka = _broker(options.keep, console, broker)
            with ExitStack() as rest:
                summary = _streamed(options, recording, kafka, console, rest)
            if options.keep:
                broker.pop_all()
    except KeyboardInterrupt:
        console.print("stopped; nothing was left running")
        raise
    if options.as_json:
        print(json.dumps(summary.to_dict(), ensure_ascii=False))
    else:
        Console().print(summary)


def _broker(keep: bool, console: Console, stack: ExitStack) -> EmbeddedKafka:
    if keep and (kept := [running for running in find_running() if running.name == _KEPT]):
        raise BrokerError(
            f"an earlier demo's broker is still up at {kept[0].address}; end it with "
            f"`streamgauge kafka stop --name {_KEPT}`, or leave out --keep"
        )
    find_java()
    kafka_jars()
    kafka = EmbeddedKafka(detached=keep)
    stack.callback(kafka.stop)
    with stage(console, f"starting Kafka {KAFKA}", f"Kafka {KAFKA} serves"):
        _start(kafka, keep)
        kafka.create_topic(TOPIC, PARTITIONS)
    return kafka


def _start(kafka: EmbeddedKafka, keep: bool) -> None:
    kafka.start()
    if keep:
        own = RunningBroker(kafka.pid, kafka.port, str(kafka.folder))
        remember(Running((own,), own.folder, False, time.time(), _KEPT))


def _streamed(
    options: Options, recording: Recording | None, kafka: EmbeddedKafka, console: Console, stack: ExitStack
) -> Summary:
    # Recorded clocks are off by up to half a minute, generated ones by seconds unless they are to be late.
    delay = "10s" if recording is None else "1m"
    stream = trending(kafka.bootstrap_servers, delay=delay, config={"log_level": 0})
    engine: Engine = ENGINES[options.engine]()
    stack.callback(engine.stop)
    ready(stream, console)
    with stage(console, f"starting {engine.title}{engine.takes}", f"{engine.title} runs"):
        engine.start(stream)
    source: Source = recording or Generated(_load(options), seconds=options.seconds)
    replay = Replay(source, TOPIC, kafka.bootstrap_servers)
    stack.callback(replay.stop)
    replay.start()
    note = f"{kafka.bootstrap_servers} · topic {TOPIC} · Ctrl-C stops everything"
    planned = options.seconds if recording is None else None
    revive = partial(_start, kafka, options.keep)
    seconds = watch(engine, replay, planned, note, console, kafka, revive)
    with stage(console, "closing the last windows"):
        look = engine.finish()
    exact = _exact(stream, kafka.bootstrap_servers, console)
    kept = kafka.bootstrap_servers if options.keep else None
    return Summary.of(
        engine.name, look.account, seconds, windows(look.table), exact, title=engine.title, kept=kept
    )


def _load(options: Options) -> Load:
    """A day's rhythm in one run, by today's clock."""
    return Load(options.rate, options.seed, start=datetime.now(UTC), day=max(options.seconds, 30.0))


def _exact(stream: Stream, servers: str, console: Console) -> Exact:
    columns = (TextColumn("counting exactly, to compare"), BarColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)
        return read_exact(stream, servers, lambda done, total: bar.update(task, completed=done, total=total))
