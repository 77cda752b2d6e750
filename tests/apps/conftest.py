"""The command line as a test runs it, and two files of one stream for it to read."""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl
import pytest

from streamgauge.apps.cli.commands import main
from streamgauge.operators.definition.aggregates import count, distinct, quantiles, sample, top_k
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.sketching.sketcher import Sketcher
from streamgauge.operators.table.schema import to_ipc, write_parquet
from streamgauge.operators.watermarks.partition_watermark import PartitionTime

from .command import SCHEMA, Ran


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ran:
    """Run the command line and give what it said: on standard output, or, if it failed, on standard error."""
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("NO_COLOR", "1")

    def run(*arguments: str | Path, code: int = 0) -> str:
        monkeypatch.setattr(sys, "argv", ["streamgauge", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
            raise SystemExit(0)
        said = capsys.readouterr()
        assert (end.value.code or 0) == code, said.err
        return said.out if code == 0 else said.err

    return run


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files of the same stream: an hour as Parquet, the next as Arrow IPC."""
    stream = (
        Stream.from_schema(SCHEMA, time="at")
        .group_by("lang")
        .tumbling("30m")
        .agg(
            posts=count(),
            users=distinct("user"),
            tags=top_k("tags"),
            ids=quantiles("user"),
            shown=sample("user", k=2),
        )
    )
    rows = pl.DataFrame({"n": range(2_400)}).select(
        at=pl.datetime(2026, 6, 1, 12) + pl.duration(seconds=pl.col("n") * 3),
        lang=pl.when(pl.col("n") % 3 == 0).then(pl.lit("de")).otherwise(pl.lit("en")),
        user=pl.col("n") % 700,
        tags=pl.concat_list(pl.lit("all"), pl.format("t{}", pl.col("n") % 10)),
    )
    folder = tmp_path_factory.mktemp("tables")
    for name, part in (("first.parquet", rows[:1200]), ("second.arrow", rows[1200:])):
        sketcher = Sketcher(stream)
        sketcher.add(part.cast({"at": pl.Datetime("us")}), PartitionTime())
        table = sketcher.drain()
        if name.endswith(".parquet"):
            write_parquet(table, folder / name)
        else:
            (folder / name).write_bytes(to_ipc(table))
    return folder
