"""Streams over frames and files: the answers of plain Python, whatever the cut, the order and the threads."""

from __future__ import annotations

import gzip
import logging
import re
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import streamgauge as sg
from streamgauge.operators.files import inputs, sketching
from streamgauge.operators.files.inputs import InputError

SECOND = 1_000_000
START = 1_767_225_600 * SECOND


def rows_of(n: int = 1_000, seed: int = 3) -> pl.DataFrame:
    """Rows in no order of time, over ten minutes."""
    number = pl.int_range(n, dtype=pl.Int64, eager=True)
    jumps = (number * 7919 + seed) % 600
    return pl.DataFrame(
        {
            "at": (START + jumps * SECOND).cast(pl.Datetime("us")),
            "lang": pl.Series([["en", "de", None][i % 3] for i in range(n)]),
            "user": (number * 31) % 97,
            "ms": (number % 50).cast(pl.Float64),
        }
    )


def counting(rows: pl.DataFrame) -> sg.Stream:
    return sg.Stream.from_schema(rows.schema, time="at").group_by("lang")


EXACT: dict[str, Any] = {
    "n": sg.count(),
    "users": sg.distinct("user"),
    "total": sg.sum("ms"),
    "sketch": sg.frequency("user"),
    "latest": sg.last("user"),
}


def test_the_answers_are_those_of_plain_python() -> None:
    rows = rows_of()
    table = counting(rows).tumbling("1m").agg(n=sg.count(), total=sg.sum("ms")).over(rows)
    expected: dict[tuple[int, Any], list[float]] = defaultdict(list)
    for at, lang, _, ms in rows.iter_rows():
        us = int(at.replace(tzinfo=UTC).timestamp() * 1e6)
        expected[us - us % (60 * SECOND), lang].append(ms)
    answers = {
        (int(row["window_start"].timestamp() * 1e6), row["lang"]): (row["n"], row["total"])
        for row in table.answers().iter_rows(named=True)
    }
    assert answers == {key: (len(values), sum(values)) for key, values in expected.items()}
    assert table.account == sg.Account(read=1_000, counted=1_000)
    assert table.is_final


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("size", [1, 37, 1_000])
def test_neither_cut_nor_threads_nor_order_matter(
    monkeypatch: pytest.MonkeyPatch, threads: int, size: int
) -> None:
    rows = rows_of(300)
    whole = [
        counting(rows).tumbling("1m"),
        counting(rows).hopping("2m", every="1m"),
        counting(rows).cumulate("4m", every="1m"),
        counting(rows).sliding("90s", step="30s"),
        counting(rows).session("5s"),
        counting(rows),
    ]
    streams = [stream.agg(**EXACT) for stream in whole]
    expected = [stream.over(rows, threads=1) for stream in streams]
    monkeypatch.setattr(inputs, "ROWS", size)
    wrong = []
    for stream, before in zip(streams, expected):
        parts = [rows.slice(200), rows.slice(0, 50), rows.slice(50, 150)]
        for data in (rows, parts):
            table = stream.over(data, threads=threads)
            names = ["n", "users", "total", "sketch"] + (["latest"] if data is rows else [])
            if not table.answers(names).equals(before.answers(names)) or table.account != before.account:
                wrong.append((stream.window, type(data)))
    assert wrong == []


def test_they_are_those_of_a_run_that_waits_for_all_rows() -> None:
    rows = rows_of(400)
    windows = [
        counting(rows).tumbling("1m", delay="1h"),
        counting(rows).hopping("2m", every="1m", delay="1h"),
        counting(rows).cumulate("4m", every="2m", delay="1h"),
        counting(rows).sliding("90s", step="30s", delay="1h"),
        counting(rows).session("5s", delay="1h"),
        counting(rows).count_window(20),
    ]
    wrong = []
    for windowed in windows:
        stream = windowed.agg(**EXACT)
        tester = sg.StreamTester(stream, start=datetime(2026, 1, 1, tzinfo=UTC))
        tester.feed(rows)
        expected = tester.finish().tables()
        order = [name for name in expected.column_names if name not in EXACT]
        if not stream.over(rows).answers().sort(order).equals(expected.answers().sort(order)):
            wrong.append(stream.window)
        assert stream.over(rows, threads=1) == stream.over(rows.lazy(), threads=1)
    assert wrong == []


def test_steps_apply_and_rows_that_fail_are_named(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    rows = rows_of(100).with_columns(text=pl.Series(["1"] * 99 + ["x"]))
    rows.write_parquet(tmp_path / "rows.parquet")
    stream = (
        sg.Stream.from_files(tmp_path / "rows.parquet", time="at")
        .filter(pl.col("lang").is_not_null())
        .with_columns(number=pl.col("text").cast(pl.Int64))
        .tumbling("1h")
        .agg(n=sg.count(), top=sg.max("number"))
    )
    with caplog.at_level(logging.WARNING):
        summary = stream.run()
    left = rows["lang"].is_not_null()
    failing = int(left[99])
    assert summary.account == sg.Account(
        read=100, counted=int(left.sum()) - failing, filtered=100 - int(left.sum()), dead_lettered=failing
    )
    assert failing == 0 or f"row 100 of {tmp_path}/rows.parquet" in caplog.text


def test_lines_go_through_the_streams_own_decoder(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    posts = sg.Stream.from_kafka(
        "posts", value=sg.json({"user": pl.Int64, "at": pl.String}), time="at"
    ).tumbling("1m")
    stream = posts.agg(n=sg.count(), users=sg.distinct("user"))
    good = '{"user": 7, "at": "2026-01-01T00:00:30Z"}\n'
    file = tmp_path / "posts.jsonl"
    file.write_text(good * 3 + "no json\n" + good.strip())
    with caplog.at_level(logging.WARNING):
        table = stream.over(file)
    assert table.account == sg.Account(read=5, counted=4, dead_lettered=1)
    assert f"1 row can't be counted; the first is row 4 of {file}:" in caplog.text
    assert table.answers()["n"].to_list() == [4]
    with gzip.open(tmp_path / "posts.ndjson.gz", "wt") as packed:
        packed.write(good * 3)
    assert stream.over([file, tmp_path / "posts.ndjson.gz"]).answers()["n"].to_list() == [7]
    tester = sg.StreamTester(stream)
    tester.feed_messages([good.encode()] * 4)
    assert tester.finish().tables() == table
    frame = pl.DataFrame({"user": [7] * 4, "at": ["2026-01-01T00:00:30Z"] * 4})
    assert stream.over(frame) == table


def test_all_kinds_of_frames_and_files_give_the_same(tmp_path: Path) -> None:
    rows = rows_of(50).with_columns(lang=pl.col("lang").fill_null("none"))
    stream = counting(rows).tumbling("1m").agg(n=sg.count(), users=sg.distinct("user"), ms=sg.sum("ms"))
    expected = stream.over(rows)
    folder = tmp_path / "folder"
    for part in ("day=1", "day=2"):
        (folder / part).mkdir(parents=True)
    rows.head(20).write_parquet(folder / "day=1" / "a.parquet")
    rows.slice(20).write_parquet(folder / "day=2" / "a.parquet")
    rows.write_csv(tmp_path / "rows.csv")
    rows.write_csv(tmp_path / "rows.tsv", separator="\t")
    rows.write_ndjson(tmp_path / "rows.ndjson")
    rows.write_ipc(tmp_path / "rows.arrow")
    arrow = rows.to_arrow()
    given: dict[str, Any] = {
        "lazy": rows.lazy(),
        "pandas": rows.to_pandas(),
        "arrow": arrow,
        "reader": pa.RecordBatchReader.from_batches(arrow.schema, arrow.to_batches(max_chunksize=7)),
        "folder": folder,
        "pattern": str(folder / "*" / "*.parquet"),
        "list": [rows.head(10), rows.slice(10)],
        **{ending: tmp_path / f"rows.{ending}" for ending in ("csv", "tsv", "ndjson", "arrow")},
    }
    wrong = {
        name for name, data in given.items() if not stream.over(data).answers().equals(expected.answers())
    }
    assert wrong == set()


def test_what_can_be_read_once_is_read_once() -> None:
    rows = rows_of(50).to_arrow()
    reader = pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(max_chunksize=7))
    stream = sg.Stream.from_frame(reader, time="at").tumbling("1h").agg(n=sg.count())
    assert stream.run().account == stream.run().account == sg.Account(read=50, counted=50)


def test_partitions_of_a_folder_are_columns(tmp_path: Path) -> None:
    for day in (1, 2):
        folder = tmp_path / f"day={day}"
        folder.mkdir()
        pl.DataFrame({"user": [1, 2, 3][:day]}).write_parquet(folder / "a.parquet")
    table = sg.Stream.from_files(tmp_path).group_by("day").agg(n=sg.count()).run().table
    assert table.answers().rows() == [(1, 1), (2, 2)]


def test_without_windows_there_is_a_row_for_each_group() -> None:
    rows = rows_of(90)
    stream = sg.Stream.from_frame(rows).group_by("lang").agg(n=sg.count(), ms=sg.quantiles("ms"))
    table = stream.run().table
    assert dict(table.answers(["n"]).rows()) == {"de": 30, "en": 30, None: 30}
    assert table.column_names == ["lang", "n", "ms"]
    both = table.merge(stream.over(rows))
    assert both.answers(["n"])["n"].to_list() == [60, 60, 60]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda f: f.drop("ms"), "the frame has no column 'ms'; it has at, lang, user"),
        (lambda f: f.with_columns(pl.col("user").cast(pl.String)), "column 'user' is String"),
        (lambda f: f.with_columns(pl.col("ms").cast(pl.Float32)), None),
        (lambda f: f.with_columns(pl.col("user").cast(pl.Int8)), None),
        (lambda f: f.with_columns(pl.col("user").cast(pl.UInt64) + 2**63), "the frame can't be read: "),
        (lambda f: f.with_columns(pl.col("at").dt.cast_time_unit("ms")), None),
        (lambda f: f.with_columns(pl.col("at").dt.cast_time_unit("ns")), "column 'at' is Datetime"),
        (lambda f: f.with_columns(pl.col("at").dt.replace_time_zone("UTC")), "column 'at' is Datetime"),
        (lambda f: f.with_columns(pl.col("lang").cast(pl.Categorical)), None),
        (lambda f: f.with_columns(lang=pl.lit(None)), None),
    ],
)
def test_other_types_are_taken_where_nothing_is_lost(change: Any, said: str | None) -> None:
    rows = rows_of(20)
    stream = counting(rows).tumbling("1m").agg(n=sg.count(), ms=sg.sum("ms"), users=sg.distinct("user"))
    if said is None:
        assert stream.over(change(rows)).account == sg.Account(read=20, counted=20)
        return
    with pytest.raises(InputError, match=said):
        stream.over(change(rows))


def test_files_that_are_not_there_or_damaged_are_named(tmp_path: Path) -> None:
    stream = sg.Stream.from_schema({"user": pl.Int64}).agg(n=sg.count())
    (tmp_path / "empty").mkdir()
    (tmp_path / "rows.xlsx").write_bytes(b"")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 and no more")
    (tmp_path / "bad.csv").write_text("user\n1\nx\n")
    (tmp_path / "bad.ndjson").write_text('{"user": 1}\n{"user"\n')
    said = {
        "gone.parquet": "there is no file .*gone.parquet",
        "*.none": r"no file matches .*\*\.none",
        "empty": "holds no file that ends in",
        "rows.xlsx": "the extension of .*rows.xlsx is unknown; it must be .parquet",
        "bad.parquet": "bad.parquet can't be read: ",
        "bad.csv": "bad.csv can't be read: ",
        "bad.ndjson": "bad.ndjson can't be read: ",
    }
    for name, message in said.items():
        with pytest.raises(InputError, match=message):
            stream.over(tmp_path / name)
    for data in (3, [], b"rows", {"user": [1]}):
        with pytest.raises(TypeError, match="over takes a frame"):
            stream.over(data)


BAD_TEXTS = {
    "ragged.csv": (
        "a,b\n1,2\n4,5,6\n",
        "line 3 has 3 values, and the header names 2 columns; put .* in quotes",
    ),
    "ragged.tsv": ("a\tb\n1\t2\n\n4\t5\t6\n", "line 4 has 3 values"),
    "late.csv": (
        "a,b\n" + "1,2\n" * 20_000 + "x,2\n",
        "line 20,002: 'x' is not a whole number, the type of column 'a'",
    ),
    "day.csv": (
        "a,b\n" + "2026-06-01,2\n" * 20_000 + "x,2\n",
        "line 20,002: 'x' is not a time, .* column 'a'",
    ),
    "late.jsonl": ('{"a": 1}\n' * 20_000 + '{"a": "x"}\n', "line 20,001: 'x' is not a whole number"),
    "part.jsonl": ('{"a": 1}\n' * 20_000 + '{"a": 1.5}\n', "line 20,001: '1.5' is not a whole number"),
    "bad.jsonl": ('{"a": 1}\n\n{"a" 2}\n', "line 3 is not JSON: Expecting ':'"),
    "array.jsonl": ('{"a": 1}\n[1]\n', "line 2 is not a JSON object"),
    "quote.csv": ('a,b\n1,2\n3,"x\n4,5\n', "line 3: a quote is opened and never closed"),
}


@pytest.mark.parametrize("name", BAD_TEXTS)
def test_the_bad_line_of_a_file_is_named_without_the_advice_of_polars(name: str, tmp_path: Path) -> None:
    text, message = BAD_TEXTS[name]
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=f"{name} can't be read: {message}") as raised:
        sg.Stream.from_files(tmp_path / name).agg(n=sg.distinct("a")).run(progress=False)
    assert not re.search("infer_schema|ignore_errors|truncate_ragged|overrides", str(raised.value))


@pytest.mark.parametrize("columns", [["a"], ["b"], ["c"], ["a", "b", "c"], []])
def test_a_line_with_too_many_values_is_refused_whichever_columns_are_used(
    columns: list[str], tmp_path: Path
) -> None:
    (tmp_path / "rows.csv").write_text("a,b,c\n1,2,3\n4,5,6,7\n")
    counted = {f"d_{one}": sg.distinct(one) for one in columns}
    with pytest.raises(InputError, match="line 3 has 4 values"):
        sg.Stream.from_files(tmp_path / "rows.csv").agg(n=sg.count(), **counted).run(progress=False)


def test_the_types_of_columns_that_are_not_used_do_not_matter(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a,b\n" + "1,2\n" * 20_000 + "1,x\n")
    run = sg.Stream.from_files(tmp_path / "rows.csv").agg(n=sg.sum("a")).run(progress=False)
    assert run.table.answers()["n"].to_list() == [20_001]


def test_a_column_of_numbers_in_one_file_and_of_text_in_another_is_named(tmp_path: Path) -> None:
    for number, text in enumerate(("1", "x")):
        (tmp_path / f"{number}.csv").write_text(f"a\n{text}\n")
        pl.DataFrame({"a": [1 if text == "1" else text]}).write_parquet(tmp_path / f"{number}.parquet")
    said = {
        ".csv": r"1\.csv can't be read: line 2: 'x' is not a whole number",
        ".parquet": r"1\.parquet: column 'a' is String, and the stream expects Int64",
    }
    for ending, message in said.items():
        with pytest.raises(InputError, match=message):
            sg.Stream.from_files(f"{tmp_path}/*{ending}").agg(n=sg.distinct("a")).run(progress=False)


def test_streams_that_need_a_topic_say_so() -> None:
    posts = sg.Stream.from_kafka("posts", value=sg.json({"user": pl.Int64, "at": pl.Int64}))
    frame = pl.DataFrame({"user": [1], "at": [1]})
    counted = posts.tumbling("1m").agg(n=sg.count())
    with pytest.raises(TypeError, match='name a column, as in time="at"'):
        counted.over(frame)
    with pytest.raises(TypeError, match="sends its rows on to 'elsewhere'"):
        posts.rows_to_kafka("elsewhere").over(frame)
    both = posts.merge(sg.Stream.from_kafka("more", value=sg.json({"user": pl.Int64, "at": pl.Int64})))
    with pytest.raises(TypeError, match="reads several topics"):
        both.tumbling("1m").agg(n=sg.count()).over(frame)
    with pytest.raises(ValueError, match="threads must be an integer ≥ 1, got 0"):
        counted.over(frame, threads=0)
    rows = sg.Stream.from_schema({"user": pl.Int64}).agg(n=sg.count())
    with pytest.raises(TypeError, match=r"has a schema but no rows; supply rows with \.over"):
        rows.run()
    with pytest.raises(ValueError, match="group_id is for runs on brokers"):
        sg.Stream.from_frame(frame).agg(n=sg.count()).run(group_id="x")


def test_what_looks_back_takes_rows_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "ROWS", 7)
    rows = rows_of(100)
    once = sg.Stream.from_schema(rows.schema, time="at").deduplicate("user", within="1h")
    table = once.tumbling("1h").agg(n=sg.count()).over(rows, threads=4)
    assert table.answers()["n"].to_list() == [rows["user"].n_unique()]
    account = table.account
    assert account is not None and account.filtered == 100 - rows["user"].n_unique()
    by_count = counting(rows).count_window(10).agg(n=sg.count(), first=sg.first("user"))
    assert by_count.over(rows, threads=4) == by_count.over(rows, threads=1)


def test_columns_that_nothing_asks_for_are_not_read(tmp_path: Path) -> None:
    rows = rows_of(20)
    lazy = rows.lazy()
    given = sg.Stream.from_schema(rows.schema, time="at")
    stream = given.filter(pl.col("user") > 3).group_by("lang").tumbling("1m").agg(n=sg.count())
    wide = stream.over(lazy)
    narrow = stream.over(rows.select("at", "lang", "user"))
    assert wide == narrow
    with pytest.raises(InputError, match="no column 'user'; it has at, lang"):
        stream.over(rows.select("at", "lang"))
    function = given.map_batches(lambda frame: frame, schema=dict(rows.schema))
    assert function.tumbling("1m").agg(n=sg.count()).over(rows).account == sg.Account(20, 20)


def test_progress_counts_rows() -> None:
    rows = rows_of(30)
    seen: list[tuple[int, int | None]] = []
    stream = sg.Stream.from_schema(rows.schema, time="at").tumbling("1h").agg(n=sg.count())
    sketching.sketch_over(stream, [rows, rows], progress=lambda *now: seen.append(now))
    assert seen[-1] == (60, 60)
    sketching.sketch_over(stream, rows.lazy(), progress=lambda *now: seen.append(now))
    assert seen[-1] == (30, None)
