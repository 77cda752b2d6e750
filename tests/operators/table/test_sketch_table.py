"""A table of sketches as a value: what its methods give is what the functions give, and it shows itself."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from streamgauge import SketchTable, Stream, StreamTester, compare, merge, query, read_table
from streamgauge.operators.definition.aggregates import count, distinct, distinct_set, quantiles
from streamgauge.operators.sketching.sketcher import Sketcher
from streamgauge.operators.table import window_groups
from streamgauge.operators.table.merge import Accumulator
from streamgauge.operators.table.schema import add_all_time, table_schema, to_ipc
from streamgauge.operators.watermarks.partition_watermark import PartitionTime
from streamgauge.operators.windows.table import AllTime
from streamgauge.sketches.core.protocol import SketchError

START = 1_767_225_600
ROWS = Stream.from_schema({"at": pl.Int64, "lang": pl.String, "user": pl.String}, time=pl.from_epoch("at"))
AGGREGATES = {
    "posts": count(),
    "users": distinct("user"),
    "set": distinct_set("user"),
    "times": quantiles("at"),
}
BY_LANG = ROWS.group_by("lang").tumbling("1m").agg(**AGGREGATES)


def rows(seconds: int = 180) -> list[dict[str, Any]]:
    return [
        {"at": START + second, "lang": "en" if second % 3 else "de", "user": f"user {second % 40}"}
        for second in range(seconds)
    ]


def minutes(seconds: int = 180) -> SketchTable:
    return _closed(BY_LANG, rows(seconds))


def _closed(stream: Stream, given: list[dict[str, Any]]) -> SketchTable:
    tester = StreamTester(stream)
    tester.feed(given)
    return tester.finish().tables()


def alive() -> window_groups.WindowGroups:
    """Groups of three minutes, as a merger has them."""
    sketcher = Sketcher(BY_LANG)
    sketcher.add(pl.DataFrame(rows()), PartitionTime())
    table = sketcher.drain()
    merged = Accumulator(table.schema)
    merged.merge(table)
    return merged.groups()


def timeless(*languages: str) -> pa.Table:
    """A table without windows, as it is merged: with the one window of all time."""
    schema = table_schema({"lang": pa.string()}, {"n": count()}, AllTime())
    bare = pa.schema([schema.field("lang"), schema.field("n")], metadata=schema.metadata)
    return add_all_time(pa.table([list(languages), [1] * len(languages)], schema=bare))


def test_answers_are_those_of_query_of_all_columns_or_of_some() -> None:
    table = minutes()
    assert table.answers().equals(query(table)) and table.answers().equals(query(table.to_arrow()))
    assert table.answers(["users"]).columns == ["window_start", "window_end", "lang", "users"]
    assert table.answers([]).equals(table.answers().select("window_start", "window_end", "lang"))
    with pytest.raises(ValueError, match=r"columns must be aggregates of this table, \['posts', .*'lang'"):
        table.answers(["lang"])


def test_a_window_that_closes_is_answered_and_shown_without_its_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    groups = alive()
    wanted = groups.table
    table = SketchTable.of_groups(alive())
    with monkeypatch.context() as patched:
        patched.setattr(window_groups, "with_sketches", lambda *_: pytest.fail("bytes were made"))
        assert table.answers().equals(query(wanted))
        assert table.slice(2, 2).answers().equals(query(wanted)[2:4])
        assert len(table) == table.num_rows == 6 and table.column_names == wanted.column_names
        assert table.column("lang").equals(wanted.column("lang"))
        assert table["window_start"].equals(wanted["window_start"])
        assert "en" in repr(table) and "<td>en</td>" in table._repr_html_()
    assert table.to_arrow().equals(wanted) and table["users"].equals(wanted["users"])


def test_methods_are_the_functions() -> None:
    table = minutes()
    assert table.rollup(every="1h", by=["lang"]) == merge(table, ["lang"], "1h")
    assert table.rollup(by=[]).answers()["posts"].to_list() == [60, 60, 60]
    early, late = table.slice(0, 3), table.slice(3)
    assert early.merge(late) == late.merge(early) == merge([early, late.to_arrow()])
    assert table.merge() == merge(table)
    assert table.compare("set", "set", by=["lang"]).equals(
        compare(table.to_arrow(), "set", "set", by=["lang"])
    )
    both = early.compare("set", "set", late, by=[])
    assert both["union"][0]["estimate"] == 40.0 and both.equals(compare(early, "set", "set", late, by=[]))
    assert table.is_final is False and table.merge().is_final is None


def test_whatever_reads_arrow_takes_it() -> None:
    table = minutes()
    wanted = table.to_arrow()
    assert pa.table(table).equals(wanted) and pa.table(table).schema.equals(
        wanted.schema, check_metadata=True
    )
    assert pl.DataFrame(table).equals(table.to_polars())
    assert table.to_polars().columns == list(table.to_pandas()) == table.column_names == table.schema.names
    reader = pa.RecordBatchReader.from_stream(table)
    assert SketchTable(reader) == table and SketchTable(table) == table
    assert table.to_pylist() == wanted.to_pylist()


def test_rows_are_chosen_and_ordered() -> None:
    table = minutes()
    english = table.filter(pc.equal(table["lang"], "en"))
    assert english == table.filter(pc.field("lang") == "en") and set(english["lang"].to_pylist()) == {"en"}
    assert table.slice(4).num_rows == 2 and table.slice(9).num_rows == 0 and table.slice(1, 0).num_rows == 0
    last = table.sort_by([("lang", "descending"), ("window_start", "descending")]).slice(0, 1)
    assert last["lang"].to_pylist() == ["en"] and last["window_start"][0] == table["window_start"][5]
    with pytest.raises(KeyError, match="'user' is not a column of"):
        table.column("user")


@pytest.mark.parametrize("ending", ["parquet", "pq", "arrow", "arrows", "ipc"])
@pytest.mark.parametrize("made", [minutes, lambda: SketchTable(timeless("de", "en"))])
def test_what_is_written_is_read_again(tmp_path: Path, ending: str, made: Callable[[], SketchTable]) -> None:
    table, file = made(), tmp_path / f"table.{ending}"
    file.write_bytes(b"what was there before")
    table.write(file)
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
    again = read_table(file)
    assert again == merge(table) and again.schema.equals(table.merge().schema, check_metadata=True)


def test_a_file_of_another_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"path must end in \.parquet, .*\.ipc, got '.*table\.csv'"):
        minutes().write(tmp_path / "table.csv")
    assert not list(tmp_path.iterdir())


def test_tables_are_equal_by_definitions_and_rows() -> None:
    table = minutes()
    assert table == minutes() == table.to_arrow() and table.to_arrow() == table
    assert table == SketchTable.of_groups(table._groups.with_final(True))
    assert table != table.slice(1) and table != minutes(170)
    assert table != pa.table({"a": [1]}) and table != "a table"
    other = _closed(ROWS.group_by("lang").tumbling("1m").agg(posts=count("user")), rows())
    assert other != _closed(ROWS.group_by("lang").tumbling("1m").agg(posts=count()), rows())
    assert pickle.loads(pickle.dumps(table)) == table
    with pytest.raises(TypeError, match="unhashable"):
        hash(table)


@pytest.mark.parametrize(
    ("given", "error", "reported"),
    [
        (pa.table({"a": [1]}), SketchError, "not a table of sketches"),
        (pl.DataFrame({"window_start": [1]}), SketchError, "not a table of sketches"),
        ([1, 2], TypeError, r"must be a SketchTable, a pyarrow.Table .* got \[1, 2\]"),
    ],
)
def test_something_else_is_refused(given: Any, error: type[Exception], reported: str) -> None:
    for take in (SketchTable, query, lambda table: compare(table, "set", "set")):
        with pytest.raises(error, match=reported):
            take(given)
    with pytest.raises(error, match=reported):
        minutes().merge(given)


def test_it_shows_the_first_windows_keys_and_answers_with_bounds() -> None:
    lines = repr(minutes()).splitlines()
    assert lines[0].startswith(
        'SketchTable of 6 rows by lang, windows of 1m, may still change: posts count(); users distinct("user"'
    )
    assert len(lines) == 7 and lines[1].startswith("  2026-01-01 00:00 – 00:01 | de | 20 | 20 | ")
    many = minutes(3_600)
    lines = repr(many).splitlines()
    assert len(lines) == 12 and lines[-1] == "  and 110 more"
    html = many._repr_html_()
    assert html.count("<tr>") == 11 and "<th>window (UTC)</th><th>lang</th><th>posts</th>" in html
    assert "<td>2026-01-01 00:00 – 00:01</td><td>de</td><td>20</td>" in html and "<br>p99 " in html
    everyone = [{**row, "user": str(row["at"])} for row in rows(3_600)]
    users = _closed(ROWS.tumbling("1h").agg(users=distinct("user")), everyone)
    (answer,) = users.answers()["users"]
    assert f"({answer['lower']:,.0f} to {answer['upper']:,.0f})" in users._repr_html_()


def test_names_and_keys_of_others_are_text_where_it_shows_itself() -> None:
    name, key = "<b>\x1b[2J", "<script>\nalert(1)"
    stream = ROWS.group_by("lang").tumbling("1m").agg(**{name: count()})
    table = _closed(stream, [{"at": START, "lang": key, "user": "ann"}])
    html = table._repr_html_()
    assert "<script" not in html and "<b>" not in html and "&lt;script&gt;" in html and "\x1b" not in html
    assert "\x1b" not in repr(table) and len(repr(table).splitlines()) == 2


def test_bytes_that_are_no_sketches_are_shown_as_such() -> None:
    table = minutes().to_arrow()
    at = table.column_names.index("users")
    broken = table.set_column(at, table.schema.field(at), pa.array([b"broken"] * 6, pa.binary()))
    assert repr(SketchTable(broken)).splitlines()[1].startswith("  can't be answered: ")
    assert "can&#x27;t be answered" in SketchTable(broken)._repr_html_()


def test_a_table_without_windows_shows_none() -> None:
    table = SketchTable(timeless("de", "en"))
    assert table.column_names == table.schema.names == table.answers().columns == ["lang", "n"]
    assert (
        table.to_arrow().column_names == table.to_polars().columns == list(table.to_pandas()) == ["lang", "n"]
    )
    assert pa.table(table).column_names == ["lang", "n"] and SketchTable(pa.table(table)) == table
    assert table.to_pylist() == [{"lang": "de", "n": 1}, {"lang": "en", "n": 1}]
    assert repr(table) == "SketchTable of 2 rows by lang: n count()\n  de | 1\n  en | 1"
    assert "window" not in table._repr_html_() and "1678" not in table._repr_html_()
    with pytest.raises(KeyError, match="window_start"):
        table.column("window_start")


def test_tables_without_windows_merge_with_and_without_their_old_columns(tmp_path: Path) -> None:
    old, new = timeless("de", "en"), SketchTable(timeless("en")).to_arrow()
    assert old.column_names[0] == "window_start" and new.column_names == ["lang", "n"]
    wanted = [{"lang": "de", "n": 1}, {"lang": "en", "n": 2}]
    for tables in ([old, new], [new, old], [SketchTable(old), SketchTable(new)]):
        assert merge(tables).to_pylist() == wanted
    assert merge(new, by=[]).to_pylist() == [{"n": 1}]
    pq.write_table(old, tmp_path / "old.parquet")
    SketchTable(new).write(tmp_path / "new.parquet")
    (tmp_path / "newer.arrow").write_bytes(to_ipc(new.slice(0, 0)))
    assert pq.read_schema(tmp_path / "new.parquet").names == ["lang", "n", "streamgauge_definition"]
    assert read_table(tmp_path).to_pylist() == wanted
    assert read_table(tmp_path, keys={"lang": "en"}).to_pylist() == wanted[1:]
    with pytest.raises(SketchError, match="one window for all rows, so it can't be cut into windows of 1h"):
        SketchTable(new).rollup(every="1h")


def test_sets_without_windows_are_compared_by_their_keys() -> None:
    schema = table_schema(
        {"lang": pa.string()}, {"users": distinct_set("user").typed(pa.string())}, AllTime()
    )
    bare = pa.schema([schema.field("lang"), schema.field("users")], metadata=schema.metadata)
    image = minutes()["set"][0].as_py()
    table = SketchTable(pa.table([["de"], pa.array([image], pa.binary())], schema=bare))
    assert table.compare("users", "users").columns[:2] == ["lang", "union"]
    with pytest.raises(ValueError, match="by= takes"):
        table.compare("users", "users", by=["window_start", "window_end"])
