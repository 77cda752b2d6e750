"""`streamgauge alerts candidate | voevent`: a candidate's page as a file to send, and alerts as VOEvents."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from ....operators.watching.terminal import write_line


def candidate(
    name: Annotated[str, typer.Argument(metavar="OBJECT", help="The object's name, such as ZTF20aaelulu.")],
    input: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Recorded packets to make the page from. Repeatable."),
    ] = None,
    server: Annotated[
        str | None,
        typer.Option(metavar="URL", help="A server that shows the app, to get the page from."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="PATH", help="File to write; default: OBJECT.html.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="With --input: settings, same as for a run."),
    ] = None,
    format: Annotated[
        str | None, typer.Option(metavar="FORMAT", help="With --input: the packets' format.")
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --server: file with its token; else STREAMGAUGE_TOKEN."),
    ] = None,
) -> None:
    """Write the page of a supernova candidate, as a file to send.

    The page is self-contained: light curve, cutouts, match, host and reason in one file. With `--input` it is
    created from recorded packets, with `--server` from a live run that `streamgauge serve --app supernova`
    serves.

        streamgauge alerts candidate ZTF20aaelulu --input night.avro --set catalog=tns.csv

        streamgauge alerts candidate ZTF20aaelulu --server http://127.0.0.1:8055
    """
    from ...supernova.candidate_file import page_from_recording, page_of_server
    from ..settings import named_values

    if (server is None) == (not input):
        raise ValueError("name recorded packets by --input FILE, or a server by --server URL")
    if server is not None:
        html = page_of_server(server, name, token_file)
    else:
        html = page_from_recording(input or [], name, format, named_values(settings))
    path = output or Path(f"{_file_name(name)}.html")
    path.write_text(html, encoding="utf-8")
    write_line(f"{path}: {path.stat().st_size:,} bytes", sys.stderr)


def voevent(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Alerts as lines of JSON, as --alerts-file writes them.")
    ],
    author: Annotated[
        str, typer.Option(metavar="IVORN", help="Publisher, such as ivo://org.example/candidates.")
    ],
    output: Annotated[Path, typer.Option(metavar="PATH", help="Folder to write to, one file per alert.")],
    role: Annotated[
        str, typer.Option(metavar="ROLE", help="observation, prediction, utility or test.")
    ] = "observation",
) -> None:
    """Write alerts about the sky as VOEvent 2.0 documents.

    The documents are for a broker such as Comet. Each alert becomes one file. Lines that aren't alerts, and
    alerts without a position, are skipped and counted.

        streamgauge alerts voevent alerts.jsonl --author ivo://org.example/candidates --output events
    """
    from datetime import UTC, datetime

    from ....operators.rules.alert import Alert
    from ...supernova.voevent import VOEventAuthor
    from ...supernova.voevent import voevent as document

    publisher = VOEventAuthor(author, role)
    written = left_out = 0
    with file.open("rb") as lines:
        output.mkdir(parents=True, exist_ok=True)
        for line in lines:
            try:
                alert = Alert.from_dict(json.loads(line))
                event = document(alert, publisher, datetime.now(UTC))
            except (ValueError, KeyError, TypeError, AttributeError):
                left_out += 1
                continue
            name = _file_name(str(alert.key[0]) if alert.key else "alert")
            (output / f"{name}-{alert.id}.xml").write_bytes(event)
            written += 1
    write_line(
        f"{output}: {written} event{'s' * (written != 1)}; {left_out} line{'s' * (left_out != 1)} left out"
    )


def _file_name(name: str) -> str:
    """A name as a file's, whatever is in it.

    >>> _file_name("../a b")
    '.._a_b'
    """
    return "".join(one if one.isascii() and (one.isalnum() or one in "-_.+") else "_" for one in name)[:100]
