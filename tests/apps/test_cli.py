"""The command line: teaches by its help, starts fast, and says in one line what the user can mend."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from datetime import date, datetime, timedelta
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

from streamgauge.apps import java
from streamgauge.apps.cli import main
from streamgauge.operators.definition.aggregates import (
    count,
    distinct,
    kll_quantiles,
    max,
    quantiles,
    sample,
    top_k,
)
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.sketching.lateness import PartitionTime
from streamgauge.operators.sketching.sketcher import Sketcher
from streamgauge.operators.table.schema import table_schema, to_ipc, write_parquet
from streamgauge.operators.table.windows import TableWindows
from streamgauge.sketches.frequent_items import FrequentItemsGroups

SCHEMA = {"at": pl.Datetime("us"), "lang": pl.String, "user": pl.Int64, "tags": pl.List(pl.String)}


Ran = Callable[..., str]


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


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files of the same stream: an hour as Parquet, the next as Arrow IPC."""
    stream = (
        Stream.from_batches(SCHEMA, time="at")
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
        table = sketcher.take()
        if name.endswith(".parquet"):
            write_parquet(table, folder / name)
        else:
            (folder / name).write_bytes(to_ipc(table))
    return folder


def test_help_teaches_by_examples(ran: Ran) -> None:
    for arguments in (
        [],
        ["demo", "trending"],
        ["kafka"],
        ["kafka", "start"],
        ["query"],
        ["top"],
        ["inspect"],
    ):
        text = ran(*arguments, "--help")
        example = "  " + " ".join(["streamgauge", *arguments])
        assert any(line.startswith(example) for line in text.splitlines()), text


def test_the_version_is_the_packages(ran: Ran) -> None:
    import streamgauge

    assert ran("--version").strip() == f"streamgauge {streamgauge.__version__}"


def test_the_command_line_starts_without_any_engine() -> None:
    code = (
        "import sys, streamgauge.apps.cli;"
        "heavy = 'pyspark numba polars pyarrow numpy confluent_kafka'.split();"
        "print([module for module in heavy if module in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_query_shows_every_window_and_group_with_bounds(ran: Ran, tables: Path) -> None:
    text = ran("query", tables)
    assert text.count("2026-06-01 12:00 – 12:30") == 2 and text.count(" en ") == 4
    assert text.count("all 400") == 4 and text.count("all 200") == 4
    assert "400 (397 to 403)" in text and "p50 296 (294 to 304)" in text


def test_query_merges_into_coarser_windows_and_fewer_keys(ran: Ran, tables: Path) -> None:
    rows = [json.loads(line) for line in ran("query", tables, "--every", "2h", "--json").splitlines()]
    assert [row["posts"] for row in rows] == [800, 1600]
    by_hour = [json.loads(line) for line in ran("query", tables, "--every", "1h", "--json").splitlines()]
    assert [(row["lang"], row["posts"]) for row in by_hour] == [("de", 400), ("en", 800)] * 2
    for place, row in enumerate(by_hour):
        hour, foreign = divmod(place, 2)
        users = {n % 700 for n in range(1200 * hour, 1200 * hour + 1200) if (n % 3 > 0) == bool(foreign)}
        assert row["users"]["lower"] <= len(users) <= row["users"]["upper"]
        assert row["tags"][0] == {
            "item": "all",
            **dict.fromkeys(("estimate", "lower", "upper"), row["posts"]),
        }


def test_query_takes_a_span_of_time(ran: Ran, tables: Path) -> None:
    arguments = ("--from", "2026-06-01T12:30", "--to", "2026-06-01T15:00+02:00", "--json")
    rows = [json.loads(line) for line in ran("query", tables, *arguments).splitlines()]
    assert {row["window_start"][:16] for row in rows} == {"2026-06-01T12:30"}


def test_answers_of_every_type_are_shown(ran: Ran, tmp_path: Path) -> None:
    day, moment = date(2026, 6, 1), datetime(2026, 6, 1, 12, 30)
    columns = {"day": day, "key": b"\x01\xff", "span": timedelta(seconds=90), "x": math.inf, "at": moment}
    rows = pl.DataFrame([columns], schema_overrides={"at": pl.Datetime("us"), "span": pl.Duration("us")})
    stream = Stream.from_batches(rows.schema, time="at").group_by("key").tumbling("30m")
    asked = {name: max(name) for name in columns} | {"days": kll_quantiles("day"), "some": sample("key")}
    sketcher = Sketcher(stream.agg(**{f"{name}_": one for name, one in asked.items()}))
    sketcher.add(rows, PartitionTime())
    write_parquet(sketcher.take(), tmp_path / "types.parquet")
    text = ran("query", tmp_path)
    for shown in ("2026-06-01", "01ff", "0:01:30", "inf", "2026-06-01 12:30"):
        assert shown in text
    row = json.loads(ran("query", tmp_path, "--json"))
    assert (row["day_"], row["key"], row["x_"], row["at_"]) == (
        "2026-06-01",
        "01ff",
        None,
        "2026-06-01T12:30:00",
    )
    assert row["some_"]["values"] == ["01ff"]


def test_top_counts_no_row_twice_where_windows_overlap(ran: Ran, tmp_path: Path) -> None:
    windows = TableWindows.of(2 * 60_000_000, 60_000_000)
    schema = table_schema({}, {"tags": top_k("tag").typed(pa.string())}, windows)
    minutes = [f"2026-06-01T12:0{minute}:00+00:00" for minute in range(6)]
    edges = [pa.array(minutes[a : a + 4]).cast(schema.field(0).type) for a in (0, 2)]
    groups = FrequentItemsGroups(4)
    groups.update([0, 0, 1, 2, 3], ["a", "b", "b", "a", "a"])
    write_parquet(pa.Table.from_arrays([*edges, groups.to_arrow()], schema=schema), tmp_path / "t.parquet")
    assert "choose a span that is a multiple of 2m" in ran("top", tmp_path, code=1)
    items = json.loads(ran("top", tmp_path, "--to", "2026-06-01T12:04", "--json"))
    assert [(item["item"], item["estimate"]) for item in items] == [("a", 2), ("b", 1)]


def test_top_merges_all_windows(ran: Ran, tables: Path) -> None:
    items = json.loads(ran("top", tables, "-k", "3", "--json"))
    assert items[0] == {"item": "all", "estimate": 2400, "lower": 2400, "upper": 2400}
    assert [item["estimate"] for item in items[1:]] == [240, 240]
    assert "2,400" in ran("top", tables / "first.parquet") or "1,200" in ran("top", tables / "first.parquet")


def test_inspect_tells_what_a_table_holds(ran: Ran, tables: Path) -> None:
    about = json.loads(ran("inspect", tables, "--json"))
    assert (about["rows"], about["windows"], about["keys"]) == (8, 4, ["lang"])
    assert about["first"] == "2026-06-01T12:00:00+00:00"
    assert [asked["aggregate"] for asked in about["aggregates"]] == [
        "count",
        "distinct",
        "top_k",
        "quantiles",
        "sample",
    ]
    text = ran("inspect", tables / "second.arrow")
    assert "4 rows in 2 windows, from 2026-06-01 13:00 to 2026-06-01 14:00 UTC" in text
    assert "lg_k 12" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["query", "nowhere.parquet"], "nowhere.parquet: there is no such file or folder"),
        (["query", "TABLES", "--from", "noon"], "'noon' is no time"),
        (["query", "TABLES", "--every", "45m"], "choose a multiple"),
        (["query", "TABLES", "--by", "country"], "country is no key of this table"),
        (
            ["top", "TABLES", "--from", "2027-01-01"],
            "no window lies in that span; there are windows from 2026",
        ),
        (["top", "TABLES", "--column", "users"], "users is no top_k column; the table has tags"),
        (["inspect", "PLAIN"], "no table of sketches"),
        (["inspect", "TEXT"], "text.parquet: "),
        (["inspect", "EMPTY"], "no file in this folder"),
        (["demo", "trending", "--input", "nowhere.json"], "nowhere.json: there is no such file"),
    ],
    ids=lambda value: " ".join(value[:3]) if isinstance(value, list) else "",
)
def test_what_the_user_can_mend_is_one_line(
    ran: Ran, tables: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "plain.parquet")
    (tmp_path / "text.parquet").write_text("this is no parquet")
    (tmp_path / "empty").mkdir()
    places = {
        "TABLES": tables,
        "PLAIN": tmp_path / "plain.parquet",
        "TEXT": tmp_path / "text.parquet",
        "EMPTY": tmp_path / "empty",
    }
    said = ran(*(places.get(argument, argument) for argument in arguments), code=1)
    assert said.startswith("error: ") and message in said
    assert len(said.strip().splitlines()) == 1


@pytest.mark.parametrize("arguments", [["demo", "trending"], ["kafka", "start"]], ids=" ".join)
@pytest.mark.parametrize("old", [None, 11])
def test_without_a_fitting_java_nothing_is_started(
    ran: Ran, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], old: int | None
) -> None:
    if old is not None:
        (tmp_path / "java").write_text(f"#!/bin/sh\necho 'openjdk version \"{old}.0.21\"' >&2\n")
        (tmp_path / "java").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(java, "_FOLDERS", ())
    monkeypatch.setenv("STREAMGAUGE_CACHE", str(tmp_path / "cache"))
    said = ran(*arguments, code=1)
    found = f"only Java {old} at {tmp_path / 'java'} was found" if old else "none was found"
    assert said.startswith("error: Java 17 or newer is needed") and found in said and "JAVA_HOME" in said
    assert len(said.strip().splitlines()) == 1


def test_a_cache_folder_that_can_not_be_made_is_named(
    ran: Ran, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("STREAMGAUGE_CACHE", str(tmp_path / "file" / "cache"))
    said = ran("kafka", "status", code=1)
    assert f"the cache folder {tmp_path / 'file' / 'cache'} can't be made" in said
    assert "STREAMGAUGE_CACHE" in said


def test_an_unknown_option_is_a_usage_error(ran: Ran) -> None:
    assert "No such option" in ran("top", "table.parquet", "--nothing", code=2)
