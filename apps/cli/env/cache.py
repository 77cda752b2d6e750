"""`streamgauge env cache`: what is kept on this machine between runs, and how to remove it."""

from __future__ import annotations

from typing import Annotated

import typer

from ....operators.watching.terminal import write_json, write_line
from ...ending import at_once


def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Remove what no running cluster uses.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per folder.")] = False,
) -> None:
    """Show or clear compiled kernels and downloads.

    Everything that is removed is compiled or downloaded again when it is next needed. Embedded Kafka
    clusters that are running keep their jars and their state.

        streamgauge env cache

        streamgauge env cache --clear
    """
    with at_once():
        from ...dev.kafka.running_clusters import find_running
        from ...environment.cache import clear_cached, list_cached

    if clear:
        removed = clear_cached(keep_jars=bool(find_running()))
        if as_json:
            for one in removed:
                write_json({**one.to_json(), "removed": True})
        else:
            write_line(f"removed {_megabytes(sum(one.bytes for one in removed))}")
        return
    cached = list_cached()
    for one in cached:
        if as_json:
            write_json(one.to_json())
        else:
            write_line(f"{_megabytes(one.bytes):>10}  {one.content:<16}  {one.folder}")
    if not cached and not as_json:
        write_line("nothing is cached")


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
