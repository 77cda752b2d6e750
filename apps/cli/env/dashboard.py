"""`streamgauge env dashboard`: dashboards as the JSON that Grafana imports."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ....operators.watching.terminal import write_json


def dashboard(
    url: Annotated[
        str | None,
        typer.Argument(
            metavar="URL", help="A query server, as Grafana reaches it; without it: metrics of runs."
        ),
    ] = None,
    tables: Annotated[
        list[str] | None, typer.Argument(metavar="TABLE", help="Include these tables only.")
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File with the server's token; else STREAMGAUGE_TOKEN."),
    ] = None,
) -> None:
    """Print a dashboard for Grafana, as JSON to import or provision.

    Without URL, the dashboard shows the metrics of runs, which a Prometheus scrapes: account, lag,
    watermarks, memory and work. With the URL of `streamgauge serve`, it shows the tables that the server has
    now, through Grafana's Infinity data source. It doesn't contain the token: set the token in the data
    source, and add the server's address to its allowed hosts.

        streamgauge env dashboard > runs.json

        streamgauge env dashboard http://127.0.0.1:8055 > answers.json

        streamgauge env dashboard http://127.0.0.1:8055 by-minute > by-minute.json
    """
    from ...grafana.run_dashboard import run_dashboard

    if url is None:
        write_json(run_dashboard())
        return
    from ....queries.client import Client
    from ...grafana.table_dashboard import table_dashboard
    from ...tables.request import token_of

    with Client(url, token_of(token_file) or None) as client:
        served = client.tables()
    names = [one["table"] for one in served]
    if unknown := [name for name in tables or () if name not in names]:
        raise ValueError(f"{url} has no table {unknown[0]!r}; it has {', '.join(names) or 'none'}")
    write_json(table_dashboard(url, [one for one in served if not tables or one["table"] in tables]))
