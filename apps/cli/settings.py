"""librdkafka's settings as they are given on the command line, for every command that connects to Kafka."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

Servers = Annotated[str, typer.Option(metavar="HOST:PORT", help="Addresses of the brokers.")]
Config = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="Setting of librdkafka, such as security.protocol=SSL."),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="File of settings, one per line; for passwords."),
]


def named_values(given: Sequence[str] | None) -> dict[str, str]:
    """What ``--set NAME=VALUE`` gave; several values of one name are a list with commas.

    >>> named_values(["limit=78", "pattern=%H=%M", "catalog=tns.csv", "catalog=gaia.csv"])
    {'limit': '78', 'pattern': '%H=%M', 'catalog': 'tns.csv,gaia.csv'}

    Raises `ValueError` for anything else, and for a rule's command that is given twice.
    """
    values: dict[str, str] = {}
    for one in given or ():
        name, sign, value = one.partition("=")
        if not sign or not name:
            raise ValueError(f"--set {one}: write NAME=VALUE")
        if name in values and "." in name:
            raise ValueError(
                f"--set {name} is given twice; to give a rule several commands, write them in a rules file "
                "(--rules)"
            )
        values[name] = f"{values[name]},{value}" if name in values else value
    return values


def kafka_settings(bootstrap_servers: str, given: Sequence[str] | None, file: Path | None) -> dict[str, Any]:
    """The settings of a client. Raises `ValueError` for a line that is not a setting, without showing it."""
    from ...operators.kafka.settings import check_settings, servers

    lines = [*(given or ()), *(file.read_text().splitlines() if file is not None else ())]
    settings: dict[str, Any] = {"bootstrap.servers": servers(bootstrap_servers)}
    for number, line in enumerate(lines):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, equals, value = line.partition("=")
        if not equals:
            # The line itself may be a secret.
            raise ValueError(f"setting {number + 1} of --config and --config-file is not NAME=VALUE")
        settings[name.strip()] = value.strip()
    check_settings(settings)
    return settings
