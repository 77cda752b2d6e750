"""A SELECT without FROM is a row of constants."""

from __future__ import annotations

import streamgauge as sg

from ..scripts import last_rows, outcomes


def test_a_row_of_constants() -> None:
    assert last_rows("SELECT 1 + 1 AS two, UPPER('x'), NULL AS nothing, NOW() IS NOT NULL AS now") == [
        [2, "X", None, True]
    ]
    assert list(outcomes("SELECT 7 / 2, 'a' AS b")[-1].columns) == ["7 / 2", "b"]
    assert sg.sql("SELECT 7 / 2 AS n").rows() == [(3,)]


REFUSED = {
    "SELECT usr": "no column is called usr: name the stream that has it, FROM",
    "SELECT COUNT(*)": "a query must read a stream, FROM",
    "SELECT *": "a query must read a stream, FROM",
    "SELECT 1 WHERE TRUE": "a query must read a stream, FROM",
    "SELECT 1 AS a EMIT CHANGES": "a query must read a stream, FROM",
    "SELECT 1 AS a, 2 AS a": "a is selected twice",
}


def test_what_needs_rows_is_refused() -> None:
    came = {text: outcomes(text)[-1].error for text in REFUSED}
    assert not [
        text for text, error in came.items() if error is None or not error.message.startswith(REFUSED[text])
    ]
