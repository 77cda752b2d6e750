"""The command `streamgauge alerts`: outlets, silences, and candidates for other people and programs."""

from __future__ import annotations

import typer

from .candidates import candidate, voevent
from .outlets import silence, test

_CANDIDATES = "Supernova candidates"


app = typer.Typer(
    name="alerts",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="""Test outlets, silence alerts, export supernova candidates.

    Outlets bring alerts to people, through Slack, e-mail, Alertmanager and others. A TOML file lists them,
    and the silences.

        # does each outlet accept a message?
        streamgauge alerts test outlets.toml

        # no alerts about the hall for two hours
        streamgauge alerts silence outlets.toml 'key=~"hall.*"' --for 2h

        # the page of a supernova candidate, to send by mail
        streamgauge alerts candidate ZTF20aaelulu --input night.avro
    """,
)
app.command()(test)
app.command()(silence)
app.command(rich_help_panel=_CANDIDATES)(candidate)
app.command(rich_help_panel=_CANDIDATES)(voevent)
