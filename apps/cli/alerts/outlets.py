"""`streamgauge alerts test | silence`: outlets that are tried, and silences that are written."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from ....operators.watching.terminal import write_json, write_line

OutletFile = Annotated[Path, typer.Argument(metavar="FILE", help="Outlets in TOML (docs/alerts.md).")]


def test(
    file: OutletFile,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="OUTLET", help="Test these outlets only.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object for each outlet.")] = False,
) -> None:
    """Send a test message to each outlet; report which accepted it.

    The message says that it is a test; silences and matchers don't suppress it. The exit code is 1 if an
    outlet didn't accept it.

        streamgauge alerts test outlets.toml

        streamgauge alerts test outlets.toml ops --json
    """
    from ....operators.rules.outlets.toml_outlets import read_outlets
    from ...jobs.outlet_trial import OutletsFailed, try_outlet

    outlets = read_outlets(file)
    titles = [one.title for one in outlets]
    if not outlets:
        raise ValueError(f"{file} has no [[outlet]] to test")
    if unknown := [name for name in names or () if name not in titles]:
        raise ValueError(f"{file} has no outlet {unknown[0]!r}; its outlets are {', '.join(titles)}")
    failed = []
    for one in outlets:
        if names and one.title not in names:
            continue
        problem = try_outlet(one)
        if problem is not None:
            failed.append(one.title)
        if as_json:
            write_json({"outlet": one.title, "kind": one.kind, "arrived": not problem, "problem": problem})
        else:
            write_line(f"{one.title}: {'it was accepted' if problem is None else f'failed: {problem}'}")
    if failed:
        raise OutletsFailed(
            f"{len(failed)} of {len(names or outlets)} did not accept the test: {', '.join(failed)}"
        )


def silence(
    file: OutletFile,
    match: Annotated[
        list[str], typer.Argument(metavar="MATCHER", help="""Such as 'rule="hot"' or 'key=~"hall.*"'.""")
    ],
    length: Annotated[
        str, typer.Option("--for", metavar="LENGTH", help="Duration of the silence, such as 2h.")
    ],
    why: Annotated[str, typer.Option(metavar="TEXT", help="Comment for later readers.")] = "",
) -> None:
    """Silence alerts that match all matchers, starting now.

    Appends a [[silence]] to the file. Runs that use the file reread it when it has changed, and need no
    restart.

        streamgauge alerts silence outlets.toml 'rule="hot"' 'key=~"hall.*"' --for 2h --why painters
    """
    from ....operators.rules.outlets.silences import AlertSilence
    from ....operators.rules.outlets.toml_outlets import read_outlets
    from ....operators.windows.durations import microseconds

    until = datetime.now(UTC).replace(microsecond=0) + timedelta(microseconds=microseconds(length))
    one = AlertSilence(match, until, why=why)
    read_outlets(file)  # a file that is wrong is refused, and stays as it is
    text = file.read_text(encoding="utf-8")
    # JSON's texts are TOML's, too.
    table = ["[[silence]]", f"match = {json.dumps(list(match))}", f"until = {until:%Y-%m-%dT%H:%M:%SZ}"]
    if why:
        table.append(f"why = {json.dumps(why)}")
    with file.open("a", encoding="utf-8") as out:
        out.write("".join(f"{line}\n" for line in ["" if text.endswith("\n") or not text else "\n", *table]))
    write_line(f"{one}", sys.stderr)
