"""The kernels that the demo runs, and no others: loaded, or compiled side by side before it begins."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
from rich.console import Console

from ...operators.definition.stream import Stream
from ...operators.formats.messages import Messages
from ...operators.kafka.warm import read_batches
from ...operators.sketching.lateness import PartitionTime
from ...operators.sketching.sketcher import Sketcher
from ...operators.table.merge import merge
from ...operators.table.query import query
from ...operators.warm.rehearsal import rehearse
from ...operators.warm.steps import Step
from ...sketches.core.kernel_cache import NotKept, only_kept
from ..compiling import compile_all
from ..replay.generated import one_slice
from ..replay.load import Load
from ..stage import stage
from .answers import windows
from .stream import SCHEMA, trending

_MANY = 2_000
"""Enough posts for every sketch to leave the form that it has while it holds few."""


def ready(stream: Stream, console: Console) -> None:
    """Have every kernel of the stream loaded, so that no engine's first batch waits for the compiler."""
    with stage(console, "loading kernels"):
        try:
            with only_kept():
                whole(stream)
                return
        except NotKept:
            pass
    parts = [Step("reading", reading), *(Step(name, counting, (name,)) for name in stream.aggregates)]
    compile_all(parts, "compiling the kernels that the demo needs (once)", console=console)
    whole(stream)


def whole(stream: Stream) -> None:
    """A few posts through every step, from Kafka's batches to answers."""
    read_batches()
    windows(rehearse(stream, Messages.of(_posts())))


def reading() -> None:
    """From Kafka's batches to columns."""
    stream = trending()
    read_batches()
    rehearse(replace(stream, aggregates={"posts": stream.aggregates["posts"]}), Messages.of(_posts()))


def counting(name: str) -> None:
    """From columns to answers, one aggregate alone."""
    stream = trending()
    sketcher = Sketcher(replace(stream, aggregates={name: stream.aggregates[name]}))
    sketcher.add(pl.DataFrame([_post(number) for number in range(_MANY)], SCHEMA), PartitionTime())
    query(merge([sketcher.take()] * 2))


def _post(number: int) -> dict[str, Any]:
    words = dict.fromkeys(SCHEMA, f"word {number}")
    at = f"2026-06-01T12:00:{number % 60:02d}Z"
    return {**words, "kind": "post", "created_at": at, "tags": [f"tag {number % 50}"]}


def _posts() -> list[bytes]:
    """Those of some seconds a minute apart: windows that fill side by side have kernels of their own."""
    load = Load(rate=1_000.0)
    later = round(60 / load.slice_seconds)
    return [post for number in (0, later) for post in one_slice(load, number).values.to_pylist()]
