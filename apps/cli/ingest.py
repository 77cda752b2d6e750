"""`streamgauge ingest`: what happens on this machine, or in a field's feed, into Kafka."""

from __future__ import annotations

import socket
import sys
from contextlib import ExitStack, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...operators.consumer.signals import as_interrupt
from ...operators.watching.terminal import write_json, write_line
from ..ending import at_once
from .settings import Config, ConfigFile, Servers, kafka_settings, named_values

if TYPE_CHECKING:
    from ...agents.ingest.agent import Agent
    from ...agents.ingest.agent_plan import AgentPlan


def ingest(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CONFIG.toml | tail FILE", help="A configuration, or tail and files to follow."
        ),
    ] = None,
    preset: Annotated[
        str | None, typer.Option(metavar="NAME", help="Preset of a feed; --preset list shows all.")
    ] = None,
    topic: Annotated[
        str | None, typer.Option(metavar="TOPIC", help="Topic to send to, created if missing.")
    ] = None,
    given: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Setting of the preset. Repeatable."),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Agent name, under which positions are stored; default: host name."
        ),
    ] = None,
    multiline: Annotated[
        str | None,
        typer.Option(metavar="REGEX", help="With tail: first line of a multi-line message."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Stop after the data that exists now.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the account as JSON at the end.")] = False,
    metrics: Annotated[
        str | None, typer.Option(metavar="[HOST:]PORT", help="Address to serve /metrics, /health and /ready.")
    ] = None,
    partitions: Annotated[
        int, typer.Option(metavar="NUMBER", min=1, help="Partitions, if the topic has to be created.")
    ] = 1,
    state: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder for file channels and local positions.")
    ] = None,
    bootstrap_servers: Servers = "localhost:9092",
    config: Config = None,
    config_file: ConfigFile = None,
) -> None:
    """Send files, feeds and sensor data to Kafka; files exactly once.

    The agent runs until Ctrl-C or SIGTERM, or with `--once` until the end of the data. The position in each
    file is stored in Kafka, in the same transaction as its lines, so a restart resumes there, even after kill
    -9. The exit code is 1 if the agent can't continue; undelivered lines are read again by the next start.

        streamgauge ingest tail "/var/log/nginx/access.log*" --topic access

        streamgauge ingest tail app.log --topic app --multiline '^\\d{4}-\\d\\d-\\d\\d ' --once --json

        streamgauge ingest --preset jetstream --topic posts

        streamgauge ingest agent.toml --metrics 9400
    """
    with at_once():
        from ...agents.ingest.agent import Agent
        from ...agents.ingest.document import ConfigError
        from ...operators.kafka.topics import admin
        from ..topics.known import known_topics

    if preset == "list":
        return _show_presets()
    name = name or socket.gethostname()
    folder = state or _state_folder()
    kafka: dict[str, Any] = kafka_settings(bootstrap_servers, config, config_file)
    kind, *files = what or [""]
    if (preset is not None) + bool(kind) != 1:
        raise ConfigError('pass a configuration file, "tail" with files, or --preset NAME')
    if kind == "tail" or preset is not None:
        if not topic:
            raise ConfigError("--topic is missing: name the topic that messages go to")
        known_topics(admin(kafka))  # says at once that no broker answers
    sink = {"type": "kafka", "topic": topic, "partitions": partitions, "config": kafka}
    if kind == "tail":
        plan = _tail_plan(files, multiline, sink, name, folder)
    elif preset is not None:
        plan = _preset_plan(preset, named_values(given), sink, name, folder)
    else:
        if files or topic:
            raise ConfigError(
                f"{kind}: a configuration names its files and topics; leave out the files and --topic"
            )
        from ...agents.ingest.config import read_config

        plan = read_config(Path(kind), name, folder)
    run(Agent(plan, once), as_json, metrics)


def run(agent: Agent, as_json: bool, metrics: str | None) -> None:
    """Run an agent until it ends or is stopped, and print its account. Raises what it raises."""
    from ...agents.ingest.metrics import progress_text, registry_of
    from ...operators.watching.progress_line import in_foreground, live_text
    from ...operators.watching.server import MetricsServer

    with ExitStack() as stack:
        if metrics is not None:
            server = MetricsServer(metrics)
            stack.callback(server.close)
            server.start(registry_of(agent), agent.health)
            write_line(f"metrics at http://{server.address}/metrics", sys.stderr)
        try:
            shown = live_text(progress_text(agent)) if in_foreground() else nullcontext()
            with as_interrupt(), shown, suppress(KeyboardInterrupt):
                agent.run()
        finally:
            if as_json:
                write_json(agent.describe())
            else:
                write_line(f"{agent.plan.name}: {agent.account}", sys.stderr)


def _tail_plan(
    files: list[str], multiline: str | None, sink: dict[str, Any], name: str, folder: Path
) -> AgentPlan:
    """Files to a topic; the source's name is of both, so that others of this machine keep their own
    positions.
    """
    import zlib

    from ...agents.ingest.document import ConfigError, FieldLines, plan_of

    if not files:
        raise ConfigError("tail: name at least one file or pattern")
    absolute = [str(Path(file).absolute()) for file in files]
    for file in absolute:
        if not any(mark in file for mark in "*?[") and not Path(file).parent.is_dir():
            raise ConfigError(f"{file}: there is no folder {Path(file).parent}")
    source: dict[str, Any] = {"type": "tail", "files": absolute}
    if multiline is not None:
        source["multiline"] = {"start": multiline}
    label = f"tail-{sink['topic']}-{zlib.crc32(chr(0).join(sorted(absolute)).encode()):08x}"
    document = {"sources": {label: source}, "sinks": {"kafka": sink}}
    return plan_of(document, FieldLines("ingest tail"), name, folder)


def _preset_plan(
    preset: str, settings: dict[str, str], sink: dict[str, Any], name: str, folder: Path
) -> AgentPlan:
    from ...agents.ingest.document import FieldLines, plan_of
    from ...agents.ingest.presets import preset_sources

    document = {"sources": preset_sources(preset, settings, sink["topic"]), "sinks": {"kafka": sink}}
    return plan_of(document, FieldLines(f"--preset {preset}"), name, folder)


def _show_presets() -> None:
    from ...agents.ingest.presets import PRESETS

    for name, preset in PRESETS.items():
        settings = ", ".join(f"{key}={value}" for key, value in preset.settings.items())
        write_line(f"{name:<12} {preset.about}" + (f"; --set {settings}" if settings else ""))


def _state_folder() -> Path:
    from platformdirs import user_state_path

    return user_state_path("streamgauge") / "ingest"
