"""`streamgauge size`: workers, mergers, memory and traffic of a stream before it exists."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from ...operators.watching.terminal import write_json, write_line
from ..ending import at_once, in_order
from .query import AsJson


def size(
    rate: Annotated[float, typer.Option(metavar="NUMBER", min=0.001, help="Messages per second.")],
    keys: Annotated[
        int, typer.Option(metavar="NUMBER", min=1, help="Groups: different values of the stream's keys.")
    ] = 1,
    aggregates: Annotated[
        str,
        typer.Option(
            metavar="NAMES", help="Aggregates, such as distinct,top_k; with parameters as distinct:lg_k=14."
        ),
    ] = "count",
    window: Annotated[str, typer.Option(metavar="LENGTH", help="Length of the tumbling windows.")] = "1m",
    checkpoint: Annotated[str, typer.Option(metavar="LENGTH", help="Time between checkpoints.")] = "1s",
    partitions: Annotated[
        int,
        typer.Option(
            metavar="NUMBER",
            min=0,
            help="Partitions of the input; 0: one for every 50,000 messages per second.",
        ),
    ] = 0,
    keyed: Annotated[
        bool, typer.Option("--keyed", help="The input is partitioned by the stream's keys.")
    ] = False,
    message_bytes: Annotated[
        int, typer.Option(metavar="BYTES", min=0, help="Mean size of a message; 0: about 70 bytes.")
    ] = 0,
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Measure the costs on this machine first.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Estimate the workers, mergers, memory and traffic of a stream.

    This is for streams that run straight off Kafka; the traffic is what they write to the table topic. Costs
    were measured on one processor, which the answer names; yours differs. With `--calibrate` they are
    measured here in a few seconds, on synthetic rows and without a broker. Bytes are exact for synthetic
    rows: their sketches are serialised.

        # 50,000 messages per second, distinct users and top tags of 1,000 keys by the minute
        streamgauge size --rate 50000 --keys 1000 --aggregates distinct,top_k --window 1m

        # larger sketches, on this machine
        streamgauge size --rate 50000 --keys 1000 --aggregates distinct:lg_k=14 --calibrate

        # what partitioning the input by key saves
        streamgauge size --rate 1000000 --keys 100000 --aggregates quantiles --checkpoint 10s --keyed
    """
    with at_once():
        from ...operators.rendering.answers import number
        from ...operators.windows.durations import microseconds
        from ..sizing import measured
        from ..sizing.estimate import Workload, estimate_of

    lengths = {"--window": microseconds(window) / 1e6, "--checkpoint": microseconds(checkpoint) / 1e6}
    for name, seconds in lengths.items():
        if not seconds:
            raise typer.BadParameter("must be longer than 0", param_hint=name)
    load = Workload(
        rate=rate,
        keys=keys,
        aggregates=aggregates,
        window=lengths["--window"],
        checkpoint=lengths["--checkpoint"],
        partitions=partitions,
        keyed=keyed,
        message_bytes=message_bytes or measured.MESSAGE_BYTES,
    )
    with in_order():
        plan = estimate_of(load, calibrate)
    if as_json:
        write_json(asdict(plan))
        return
    source = "this machine, just now" if calibrate else measured.SOURCE
    write_line(f"partitions   {number(plan.partitions)} of the input")
    write_line(
        f"workers      {number(plan.workers)}, {plan.worker_cores:.2g} cores in all, "
        f"{_bytes(plan.worker_bytes)} of memory each"
    )
    write_line(
        f"mergers      {number(plan.mergers)}, {plan.merger_cores:.2g} cores in all, "
        f"{_bytes(plan.merger_bytes)} of memory each"
    )
    write_line(
        f"table topic  {_bytes(plan.table_bytes_per_day)} written per day and replica; a row has "
        f"{_bytes(plan.row_bytes)}"
    )
    write_line(f"costs        measured on {source}; cores are planned to be 70 % busy")
    if not calibrate:
        write_line("Your machine differs: --calibrate measures the costs on it.")


def _bytes(size: float) -> str:
    """A size as people read it.

    >>> _bytes(512), _bytes(3_210_000), _bytes(52e9)
    ('512 bytes', '3.2 MB', '52 GB')
    """
    if size < 1_000:
        return f"{size:.0f} bytes"
    for unit in ("kB", "MB", "GB"):
        size /= 1_000
        if size < 1_000:
            return f"{size:.2g} {unit}" if size < 10 else f"{size:.0f} {unit}"
    return f"{size / 1_000:,.1f} TB"
