"""A stream of files has the rows and windows of the same rows in a topic; what needs a topic is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl

from ..scripts import DECLARED, outcomes

_TIME = datetime(2026, 1, 1, tzinfo=UTC)
_MS = 1_767_225_600_000


def _files(folder: Path) -> str:
    """Streams of two files, out of order, with a zone and unsigned numbers; and the same rows in a topic."""
    seconds, users, numbers = [0, 70, 30, 3600], ["a", "b", "a", None], [1, 2, 3, 9]
    frame = pl.DataFrame(
        {
            "at": [_TIME + timedelta(seconds=one) for one in seconds],
            "usr": pl.Series(users, dtype=pl.Categorical),
            "n": pl.Series(numbers, dtype=pl.UInt16),
            "tags": [["x"], ["y", "z"], None, []],
        }
    )
    frame[:3].write_parquet(folder / "1.parquet")
    frame[3:].write_parquet(folder / "2.parquet")
    rows = ", ".join(
        f"({_MS + second * 1000}, {'NULL' if user is None else repr(user)}, {number})"
        # In their order, since in a topic a row may be late.
        for second, user, number in sorted(zip(seconds, users, numbers))
    )
    path = folder / "*.parquet"
    return (
        f"{DECLARED} CREATE STREAM f WITH (PATH='{path}', TIMESTAMP='at');"
        f" CREATE STREAM g WITH (PATH='{path}');"
        f" INSERT INTO posts (ts, usr, n) VALUES {rows};"
    )


def test_files_give_the_rows_of_a_topic(tmp_path: Path) -> None:
    script = _files(tmp_path)
    wrong = {}
    for query in (
        "SELECT usr, n * 2 AS m, ROWTIME FROM {} WHERE n > 1",
        "SELECT usr, COUNT(*) AS c, SUM(n) AS s, window_start FROM {} WINDOW TUMBLING (SIZE 1 MINUTE)"
        " GROUP BY usr",
        "SELECT MAX(n) AS m, window_end FROM {} WINDOW HOPPING (SIZE 2 MINUTES, ADVANCE BY 1 MINUTE)",
        "SELECT COUNT(*) AS c FROM {} WINDOW SESSION (1 MINUTE)",
        "SELECT usr, n FROM {} UNION ALL SELECT usr, n FROM posts",
    ):
        rows, expected = (
            outcomes(f"{script} {query.format(name)};")[-1].to_json()["rows"] for name in ("f", "posts")
        )
        if sorted(map(repr, rows)) != sorted(map(repr, expected)) or not rows:
            wrong[query] = rows, expected
    assert not wrong


def test_all_rows_of_files_can_be_counted_without_a_window(tmp_path: Path) -> None:
    script = _files(tmp_path)
    queries = {
        "SELECT COUNT(*) AS c, SUM(n) AS s FROM g": [[4, 15]],
        "SELECT usr, COUNT(*) AS c FROM f GROUP BY usr ORDER BY c DESC LIMIT 1": [["a", 2]],
        "SELECT EXPLODE(tags) AS t FROM g": [["x"], ["y"], ["z"]],
        "SELECT usr FROM g LIMIT 2": [["a"], ["b"]],
        "DESCRIBE f": [
            ["at", "TIMESTAMP", "time"],
            ["usr", "VARCHAR", ""],
            ["n", "BIGINT", ""],
            ["tags", "ARRAY<VARCHAR>", ""],
        ],
    }
    results = {query: outcomes(f"{script} {query};")[-1].to_json()["rows"] for query in queries}
    assert results == queries


def test_what_files_cannot_do_is_refused(tmp_path: Path) -> None:
    script = _files(tmp_path)
    refused = {
        "SELECT COUNT(*) AS c FROM g WINDOW TUMBLING (SIZE 1 MINUTE)": "windows need an event time",
        "SELECT window_start, COUNT(*) AS c FROM g": "without a WINDOW, all rows are counted together",
        "SELECT ROWTIME FROM g": "which have no ROWTIME",
        "SELECT usr FROM g EMIT CHANGES": "EMIT is only for topics",
        "CREATE STREAM z AS SELECT usr FROM g": "files can be read only by a SELECT",
        "INSERT INTO posts SELECT * FROM g": "files can be read only by a SELECT",
        "INSERT INTO g (usr) VALUES ('x')": "g is read from files, which take no rows",
        "SELECT g.n FROM g JOIN users u ON g.usr = u.usr": "files can't be joined",
        "CREATE STREAM z (usr VARCHAR) WITH (PATH='x.parquet')": "z gets its columns from its files",
        "CREATE TABLE z WITH (PATH='x.parquet')": "files are rows one by one",
        "CREATE STREAM z WITH (PATH='x.parquet', VALUE_FORMAT='JSON')": "VALUE_FORMAT is for a topic",
        "CREATE STREAM z WITH (PATH='x.parquet')": "there is no file x.parquet",
    }
    wrong = {}
    for statement, message in refused.items():
        error = outcomes(f"{script} {statement};")[-1].error
        if error is None or message not in error.message:
            wrong[statement] = error and error.message
    assert not wrong
