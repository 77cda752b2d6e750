"""`streamgauge run`: an app on a recording or on a topic of yours."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ..dev.replay.speed import Speed, faster
from ..ending import at_once
from ..registry import APPS, app_names, app_of
from .settings import Config, ConfigFile, kafka_settings, named_values


class RunEngine(StrEnum):
    """Where an app runs."""

    local = "local"
    spark = "spark"


class Truncated(StrEnum):
    """What a live run does where a log has lost messages that were counted."""

    stop = "stop"
    on = "continue"


def run(
    app: Annotated[str, typer.Argument(metavar="APP", help=", ".join(app_names()), show_default=False)],
    input: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="Replay a recording, or an archive, through a broker of its own. Repeatable."
        ),
    ] = None,
    more: Annotated[
        list[Path] | None, typer.Argument(metavar="FILE", help="More files of the recording.")
    ] = None,
    format: Annotated[
        str | None, typer.Option(metavar="FORMAT", help="Message format; detected by default.")
    ] = None,
    engine: Annotated[RunEngine, typer.Option(help="The standalone consumer, or Spark.")] = RunEngine.local,
    rules: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Rules in TOML, in place of the app's own (docs/rules.md)."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A setting of the app or format, such as delay=1m. Repeatable.",
        ),
    ] = None,
    speed: Speed = "max",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object; live, one per alert.")
    ] = False,
    bootstrap_servers: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Brokers for a live run.")
    ] = None,
    topic: Annotated[str | None, typer.Option(metavar="TOPIC", help="Topic to read live.")] = None,
    group: Annotated[
        str | None,
        typer.Option(metavar="GROUP", help="Consumer group of a live run, which resumes it."),
    ] = None,
    alerts_topic: Annotated[
        str | None,
        typer.Option(
            metavar="TOPIC",
            help="Topic for alerts, exactly once; live default: GROUP.alerts.",
        ),
    ] = None,
    alerts_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Append alerts to this file, as lines of JSON.")
    ] = None,
    webhook: Annotated[
        str | None, typer.Option(metavar="URL", help="POST alerts to this address, as JSON.")
    ] = None,
    outlets_file: Annotated[
        Path | None,
        typer.Option(
            "--outlets",
            metavar="FILE",
            help="Slack, e-mail, Alertmanager and others in TOML, and silences (docs/alerts.md).",
        ),
    ] = None,
    outlet: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELDS",
            help='One outlet without a file: \'kind = "ntfy", url = "https://ntfy.sh/hall"\'. Repeatable.',
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Don't execute the rules' commands; a replay lists them."),
    ] = False,
    stale: Annotated[
        str | None,
        typer.Option(metavar="LENGTH", help="Live: report a silence this long, such as 10m."),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Live on Spark: folder for checkpoints and tables."),
    ] = None,
    page: Annotated[
        int | None,
        typer.Option(
            metavar="PORT",
            min=0,
            max=65_535,
            help="Serve a replay's page on this port until Ctrl-C. 0: a free one.",
        ),
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="Live: folder or s3:// URL to store closed windows."),
    ] = None,
    keep: Annotated[
        str | None, typer.Option(metavar="LENGTH", help="With --table: retention of windows, such as 30d.")
    ] = None,
    workers: Annotated[
        int, typer.Option(metavar="NUMBER", min=1, help="Live: number of worker processes.")
    ] = 1,
    metrics: Annotated[
        str | None,
        typer.Option(metavar="[HOST:]PORT", help="Live: address to serve /metrics, /health and /ready."),
    ] = None,
    truncated: Annotated[
        Truncated, typer.Option(help="Live: what to do if a log lost counted messages.")
    ] = Truncated.stop,
    config: Config = None,
    config_file: ConfigFile = None,
) -> None:
    """Run a built-in app on a recording or a live topic.

    With `--input`, a recording is sent through a broker that is started for this run; the answers are
    compared with exact ones, and all alerts are listed. With `--bootstrap-servers` and `--topic`, the app
    runs on your topic until Ctrl-C, and the next run resumes at its position. `streamgauge serve --app`
    serves its page.

        streamgauge run iot --input readings.csv --set time=timestamp --set limit=78 --set hysteresis=2

        streamgauge run iot --input readings.csv --rules rules.toml --json | jq .alerts

        streamgauge run iot --input readings.csv --engine spark

        streamgauge run iot --input readings.csv --speed 600 --page 8055

        streamgauge run iot --bootstrap-servers localhost:9092 --topic sensors
    """
    paths = [*(input or ()), *(more or ())]
    live = {
        "--group": group, "--stale": stale, "--state": state, "--metrics": metrics, "--config": config,
        "--config-file": config_file, "--table": table, "--keep": keep,
        "--truncated": truncated is not Truncated.stop,
    }  # fmt: skip
    times = faster(speed)
    given = named_values(settings)
    if (bootstrap_servers is not None or topic is not None) == bool(paths):
        raise ValueError("name a recording by --input FILE, or a topic by --bootstrap-servers and --topic")
    for path in paths:
        if not path.exists():
            raise ValueError(f"{path}: there is no such file")
    if paths:
        if unused := [name for name, value in live.items() if value]:
            raise ValueError(f"{unused[0]} is for a live run, with --bootstrap-servers and --topic")
        if app not in APPS:
            app_of(app)  # an unknown one is refused before a broker is started
        with at_once():
            from ..dev.kafka.beside import KafkaBeside
        with KafkaBeside() as beside:
            with at_once():
                from ..jobs.job import Job
                from ..jobs.outlets import closing, outlets
                from ..running.replaying import AppReplay, replay

            job = replace(Job.of(app_of(app), format, given, rules, paths[0]), acts=not dry_run)
            to = outlets(alerts_topic, alerts_file, webhook, (rules, outlets_file), outlet or ())
            with closing(to):
                replay(AppReplay(job, paths, engine.value, times, to, page), as_json, beside)
        return
    with at_once():
        from ..app import Feed
        from ..jobs.job import Job, Live
        from ..jobs.outlets import alerts_topic_of, closing, outlets

    job = replace(Job.of(app_of(app), format, given, rules), acts=not dry_run)
    if bootstrap_servers is None or topic is None:
        raise ValueError("a live run needs both --bootstrap-servers HOST:PORT and --topic NAME")
    if page is not None:
        raise ValueError(f"--page is for recordings; live, use: streamgauge serve --app {app} --group GROUP")
    if times:
        raise ValueError("--speed is for recordings; a live run reads messages as they come")
    named = group or f"{app}-{topic}"
    alerts_topic = alerts_topic or alerts_topic_of(named)
    to = outlets(alerts_topic, alerts_file, webhook, (rules, outlets_file), outlet or ())
    kafka = kafka_settings(bootstrap_servers, config, config_file)
    feed = Feed(topic, kafka.pop("bootstrap.servers"), kafka)
    from ..running.watching import OUTLET_SECONDS, watch

    with closing(to, OUTLET_SECONDS):
        request = Live(
            job, feed, named, engine.value, to, stale, state, workers, metrics, truncated.value, table, keep
        )
        watch(request, as_json)
