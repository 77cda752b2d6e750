"""`streamgauge grafana`: dashboards as the JSON that Grafana imports."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from ....operators.watching.terminal import write_json

app = typer.Typer(
    name="grafana",
    no_args_is_help=True,
    help="""Print dashboards for Grafana, as JSON to import or provision.

        streamgauge grafana runs > runs.json

        streamgauge grafana answers http://127.0.0.1:8055 > answers.json
    """,
)

TokenFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The server's token; else STREAMGAUGE_TOKEN.")
]


@app.callback()
def grafana() -> None:
    """Dashboards for Grafana, as JSON to import or to provision."""


@app.command()
def runs() -> None:
    """A dashboard of the metrics of runs, which a Prometheus scrapes: account, lag, watermarks, memory, work.

    streamgauge grafana runs > runs.json
    """
    from ...grafana.run_dashboard import run_dashboard

    write_json(run_dashboard())


@app.command()
def answers(
    url: Annotated[str, typer.Argument(metavar="URL", help="A query server, as Grafana reaches it.")],
    table: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Include this table only. Repeatable.")
    ] = None,
    token_file: TokenFile = None,
) -> None:
    """Print a dashboard of a query server's tables, for Grafana's Infinity data source.

    The dashboard shows the tables that the server has now. It doesn't contain the token: set the token in the
    data source, and add the server's address to its allowed hosts.

        streamgauge grafana answers http://127.0.0.1:8055 > answers.json

        streamgauge grafana answers http://127.0.0.1:8055 --table by-minute > answers.json
    """
    from ....queries.client import Client
    from ...grafana.table_dashboard import table_dashboard

    token = token_file.read_text().strip() if token_file is not None else os.environ.get("STREAMGAUGE_TOKEN")
    with Client(url, token=token or None) as client:
        tables = client.tables()
    names = [one["table"] for one in tables]
    if unknown := [name for name in table or () if name not in names]:
        raise ValueError(f"{url} has no table {unknown[0]!r}; it has {', '.join(names) or 'none'}")
    write_json(table_dashboard(url, [one for one in tables if not table or one["table"] in table]))
