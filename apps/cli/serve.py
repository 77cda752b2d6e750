"""`streamgauge serve`: answers over HTTP from a group's table topic, live, or from files."""

from __future__ import annotations

import sys
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from ...operators.watching.terminal import write_line
from ..ending import at_once, in_order
from .settings import Config, ConfigFile, Servers, kafka_settings, named_values


def serve(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH", help="Files of sketches, Parquet or Arrow IPC, or folders of them."),
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option(metavar="GROUP", help="Serve the live table of this group. Repeatable."),
    ] = None,
    app: Annotated[
        list[str] | None,
        typer.Option(
            metavar="APP",
            help="Show the page of an app that `streamgauge run APP` runs as --group. Repeatable.",
        ),
    ] = None,
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="Setting of the app, same as for its run. Repeatable."
        ),
    ] = None,
    rules: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Rules in TOML, same as for the app's run.")
    ] = None,
    format: Annotated[
        str | None, typer.Option(metavar="FORMAT", help="Message format, if set for the run.")
    ] = None,
    alerts_topic: Annotated[
        str | None,
        typer.Option(metavar="TOPIC", help="Topic of the app's alerts; default: GROUP.alerts."),
    ] = None,
    bootstrap_servers: Servers = "localhost:9092",
    config: Config = None,
    config_file: ConfigFile = None,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on; beyond loopback needs a token.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="PORT", min=0, max=65_535, help="Port to listen on; 0 picks a free one.")
    ] = 8055,
    token_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File with the clients' token; else STREAMGAUGE_TOKEN."),
    ] = None,
    keep: Annotated[str, typer.Option(metavar="LENGTH", help="Time to keep closed windows.")] = "24h",
    keep_mib: Annotated[
        int, typer.Option(metavar="NUMBER", min=1, help="Memory for closed windows, in MiB per table.")
    ] = 1024,
    table: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="Folder of closed windows that the run stores with --table."),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder to store closed windows for the next start."),
    ] = None,
    threads: Annotated[int, typer.Option(metavar="NUMBER", min=1, help="Queries to answer in parallel.")] = 4,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, help="Longest duration of a query.")
    ] = 30.0,
) -> None:
    """Serve tables of sketches over HTTP until Ctrl-C.

    With `--group`, this serves the table of a running stream, including open windows. It reads the group's
    table topic without joining the group, so any number of servers can run. `--table` adds the closed windows
    that the run stores. With paths, it serves stored tables. The questions are listed at /docs; use
    `streamgauge query`, `streamgauge.Client` or any HTTP client. Only this machine has access; a `--host`
    beyond loopback requires a token.

        streamgauge serve --group by-minute --bootstrap-servers localhost:9092

        streamgauge serve trades

        streamgauge serve --group by-minute --host 0.0.0.0 --token-file token --state /var/lib/streamgauge

    Open the address in a browser for a page of all tables (docs/page.md), or with `--app` for the page of an
    app: its alerts and their reasons, and the figures of its live run. Pass the same settings, rules and
    format as for the run, because they determine the panels and the limits that are drawn.

        streamgauge serve --app iot --group iot-sensors --set limit=78
    """
    with at_once():
        from ...operators.windows.durations import microseconds
        from ...queries.server.http.server import QueryServer, check_token
        from ...queries.server.http.service import Service
        from ...queries.views.file_table import FileTable
        from ...queries.views.kept_windows import TableWithKept
        from ...queries.views.live import LiveTable
        from ...queries.views.table_follower import TableFollower
        from ...queries.views.table_snapshot import TableSnapshot
        from ..page.routes import OPEN_TO_ALL, page_routes
        from ..page.serving import pages
        from ..tables.request import token_of

    names = [path.resolve().stem if path.is_file() else path.resolve().name for path in paths or ()]
    shown = pages(app or (), group or (), names, named_values(given), rules, alerts_topic, format)
    if table is not None and not group:
        raise ValueError(
            "--table is for the closed windows of a group: name it by --group, or serve FOLDER alone"
        )
    if not paths and not group:
        raise ValueError(
            "name what to serve: --group NAME for a running stream's table, or files and folders"
        )
    token = token_of(token_file)
    check_token(host, token)
    settings = kafka_settings(bootstrap_servers, config, config_file)
    tables: dict[str, Any] = {}
    for name, path in zip(names, paths or ()):
        _new(tables, name)
        tables[name] = FileTable(name, path)
    keep_us, keep_bytes = microseconds(keep), keep_mib << 20
    for name in shown.groups:
        _new(tables, name)
        tables[name] = LiveTable(name, keep_us, keep_bytes)
    live = {name: tables[name] for name in shown.groups}
    if table is not None:
        tables |= {name: TableWithKept(one, _folder(table, name, live)) for name, one in live.items()}
    service = Service(tables, threads=threads, seconds=timeout)
    routes = page_routes(service, shown.apps)
    server = QueryServer(service, host, port, token, routes, OPEN_TO_ALL)
    # uvicorn ends in order at a signal, and raises it again then.
    with in_order() as stack, suppress(KeyboardInterrupt):
        for name in shown.groups:
            saved = None if state is None else TableSnapshot(state / name)
            stack.callback(TableFollower(name, settings, live[name], saved).close)
        shown.follow(settings, stack)
        line = f"{', '.join(tables)} at {server.url}; all questions: {server.url}/docs"
        write_line(line, sys.stderr)
        of = ", ".join(one.app.name for one in shown.apps) or "all of it"
        write_line(f"the page of {of}: {server.url}/", sys.stderr, flush=True)
        server.run()


def _folder(table: str, group: str, groups: Collection[str]) -> str:
    """The folder of a group's closed windows: of streams that run together, the one of the stream's name."""
    from ...operators.table.stored_files import is_folder, stored_at

    own = stored_at(table) / group.rpartition(".")[2]
    if len(groups) > 1 and not is_folder(own):
        raise ValueError(
            f"--table {table}: there is no folder {own} for the group {group}; serve groups one by one"
        )
    return str(own) if is_folder(own) else table


def _new(tables: dict[str, Any], name: str) -> None:
    if name in tables:
        raise ValueError(f"two tables would be named {name!r}; serve one of them from another server")
