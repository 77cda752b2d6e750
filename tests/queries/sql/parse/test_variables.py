"""Variables of a script stand for texts, names and words, and an unknown one is refused at its place."""

from __future__ import annotations

from pathlib import Path

import pytest

import streamgauge as sg
from streamgauge.queries.sql.errors import SqlError

from ..scripts import DECLARED, START, last_rows, outcomes

POSTS = f"INSERT INTO posts (ts, usr, n) VALUES ({START}, 'ann', 1), ({START + 1}, 'bob', 2);"


def test_a_variable_is_a_text_a_name_or_words() -> None:
    script = f"{DECLARED}{POSTS} DEFINE who = 'bob'; DEFINE what = 'usr, n'; DEFINE Table_1 = 'posts';"
    assert last_rows(f"{script} SELECT ${{what}} FROM ${{TABLE_1}} WHERE usr = '${{who}}';") == [["bob", 2]]
    assert last_rows(f"{script} DEFINE who = 'an'; SELECT n FROM posts WHERE usr = '${{who}}n';") == [[1]]
    assert last_rows(f"{script} DEFINE c = 'sr'; SELECT \"u${{c}}\" FROM posts;") == [["ann"], ["bob"]]
    assert last_rows(f"{script} SELECT '$${{who}}' AS x FROM posts LIMIT 1;") == [["${who}"]]
    assert last_rows(f"{script} SHOW VARIABLES;") == [
        ["who", "bob"],
        ["what", "usr, n"],
        ["table_1", "posts"],
    ]


@pytest.mark.parametrize(
    ("statement", "words"),
    [("SELECT '${nope}' AS x FROM posts", "'${nope}'"), ("SELECT ${nope} FROM posts", "${nope}")],
)
def test_an_unknown_variable_is_refused_at_its_place(statement: str, words: str) -> None:
    error = outcomes(f"{DECLARED} DEFINE nope = 'n'; UNDEFINE nope; {statement}")[-1].error
    assert error is not None and error.message.startswith("no variable is called nope; write DEFINE nope")
    assert str(error).splitlines()[-1].strip() == "^" * len(words)


def test_scripts_within_a_script_and_python_know_them(tmp_path: Path) -> None:
    file = tmp_path / "one.sql"
    file.write_text("SELECT n FROM posts WHERE usr = '${who}'")
    assert last_rows(f"{DECLARED}{POSTS} DEFINE who = 'ann'; RUN SCRIPT '{file}';") == [[1]]
    stream = sg.sql(
        f"{DECLARED} DEFINE span = '1 HOUR'; SELECT COUNT(*) AS n FROM posts WINDOW TUMBLING (SIZE ${{span}})"
    )
    assert stream.window.size_us == 3_600_000_000
    with pytest.raises(SqlError, match="no variable is called span"):
        sg.sql(f"{DECLARED} SELECT COUNT(*) AS n FROM posts WINDOW TUMBLING (SIZE ${{span}})")
