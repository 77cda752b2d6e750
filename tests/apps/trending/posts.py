"""Posts of a social stream, sketched, counted exactly, and shown in the terminal."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pyarrow as pa
from rich.console import Console

from streamgauge.apps.trending.answers import Bounded, Tag, Window
from streamgauge.apps.trending.exact import Exact
from streamgauge.apps.trending.stream import SCHEMA, asked
from streamgauge.apps.trending.view import Snapshot
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.sketching.accounting import Account
from streamgauge.operators.sketching.lateness import PartitionTime
from streamgauge.operators.sketching.sketcher import Sketcher

STREAM = asked(Stream.from_batches(SCHEMA, time="created_at"))


NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)


def line(second: float, author: str = "ann", *tags: str, kind: str = "post", id: str = "") -> bytes:
    at = (NOON + timedelta(seconds=second)).isoformat()
    return json.dumps({"id": id, "kind": kind, "author": author, "created_at": at, "tags": tags}).encode()


def sketched(lines: list[bytes]) -> tuple[pa.Table, Account]:
    """One partition's lines through the step that every engine uses; dead letters told by Python's json."""
    posts: list[dict[str, Any]] = []
    for each in lines:
        try:
            posts.append(json.loads(each))
        except ValueError:
            continue
    sketcher = Sketcher(STREAM)
    account = sketcher.add(pl.DataFrame(posts, schema=SCHEMA), PartitionTime())
    dead = len(lines) - len(posts)
    return sketcher.take(), account + Account(read=dead, dead_lettered=dead)


def counted(lines: list[bytes]) -> Exact:
    exact = Exact(STREAM)
    for each in lines:
        exact.add(0, each)
    return exact


def shown(what: object, width: int, height: int = 24) -> str:
    console = Console(width=width, height=height, color_system=None, file=None)
    with console.capture() as captured:
        console.print(what)
    return captured.get()


def snapshot(n_windows: int, n_tags: int = 10) -> Snapshot:
    tags = tuple(
        Tag(100_000 / r, 99_000 / r, 100_500 / r, f"標籤 a longer tag number {r}")
        for r in range(1, n_tags + 1)
    )
    made = [
        Window(
            NOON + timedelta(seconds=10 * n),
            NOON + timedelta(seconds=10 * n + 10),
            1_234_567,
            Bounded(654_321, 640_000, 670_000),
            tags,
            ("first\npost", "second"),
        )
        for n in range(n_windows)
    ]
    account = Account(9_000_000, 8_000_000, 900_000, 90_000, 10_000)
    return Snapshot("Spark", 75, 90, made, NOON + timedelta(seconds=20), account, 123_456, 7, "Ctrl-C stops")
