"""A cluster, and trades in a topic and in files whose windows plain Python counts."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from .standalone import Cluster

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
PARTITIONS = 4


@dataclass(frozen=True)
class Trades:
    """Trades in order of time, in a topic of four partitions and in four files."""

    rows: list[dict[str, Any]]
    topic: str
    servers: str
    folder: Path

    def counted(self) -> dict[tuple[str, str], tuple[int, int]]:
        """How many trades each window of a symbol has, and of how many users."""
        users: dict[tuple[str, str], list[int]] = defaultdict(list)
        for row in self.rows:
            users[str(row["at"].replace(second=0, microsecond=0)), row["symbol"]].append(row["user"])
        return {key: (len(rows), len(set(rows))) for key, rows in users.items()}


def check(rows: list[list[str]], trades: Trades) -> None:
    """A table's answers are those of the trades: counts exactly, users within their bounds."""
    expected = trades.counted()
    assert {(at, symbol) for at, symbol, *_ in rows} == set(expected)
    for at, symbol, n, users, *_ in rows:
        exact = expected[at, symbol]
        assert int(n) == exact[0]
        bounds = eval(users, {"nan": float("nan")})
        assert bounds["lower"] <= exact[1] <= bounds["upper"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master and two workers of a core each, the package installed on both."""
    with Cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def trades(kafka: Any, send: Any, tmp_path_factory: pytest.TempPathFactory) -> Trades:
    """Six minutes of three symbols."""
    folder = tmp_path_factory.mktemp("trades")
    rows = [
        {"symbol": "abc"[n % 3], "user": n * n % 97, "price": n / 7, "at": BEGIN + timedelta(seconds=n * 0.1)}
        for n in range(3_600)
    ]
    name = f"trades-{folder.name}"
    kafka.create_topic(name, PARTITIONS)
    for partition in range(PARTITIONS):
        own = rows[partition::PARTITIONS]
        messages = [json.dumps({**row, "at": row["at"].strftime("%Y-%m-%dT%H:%M:%S.%f")}) for row in own]
        send(name, [message.encode() for message in messages], partition)
    (folder / "rows").mkdir()
    frame = pl.DataFrame(rows)
    for part in range(PARTITIONS):
        frame[part * 900 : (part + 1) * 900].write_parquet(folder / "rows" / f"{part}.parquet")
    return Trades(rows, name, kafka.bootstrap_servers, folder)
