"""Questions read from parameters: what is understood, and what is said of the rest."""

from __future__ import annotations

import json
from datetime import UTC, datetime, time
from typing import Any

import pytest

from streamgauge.operators.windows.durations import CalendarLength
from streamgauge.queries.question.question import (
    BadQuestion,
    Rollup,
    WindowSelection,
    item_of,
    question,
)
from streamgauge.queries.server.http.request_params import from_json
from streamgauge.sketches.core.protocol import SketchError

from ...cases import each


def test_parameters_of_all_sorts() -> None:
    result = question(
        "rows",
        {
            "from": ["2026-06-01T12:00"],
            "to": ["2026-06-01T15:00+02:00"],
            "every": ["1h"],
            "by": ["lang", "os"],
        },
    )
    assert (result.where.since, result.where.until) == (1_780_315_200_000_000, 1_780_318_800_000_000)
    assert (result.every, result.by) == (Rollup("1h"), ("lang", "os"))
    local = question("rows", {"every": ["1mo"], "offset": ["-1d"], "zone": ["Asia/Kathmandu"]})
    assert local.every == Rollup("1mo", "-1d", "Asia/Kathmandu")
    assert question("rows", {}).by is None and question("rows", {"by": ["none"]}).by == ()
    assert question("top-k", {}).every == "span" and question("rows", {}).every == "window"
    assert question("quantiles", {"q": ["0.5", "1"]}).ranks == (0.5, 1.0)
    assert question("rows", {"open": ["false"]}).where == WindowSelection(open=False)
    keys = {"key.lang": ["en"], "null": ["lang"], "other-key.lang": ["de"]}
    sets = question("sets", {**keys, "column": ["users"], "last": ["1h"]})
    assert sets.where.keys == (("lang", ("en", None)),) and sets.other == "users"
    assert sets.other_where == WindowSelection(
        last=CalendarLength(0, 3_600_000_000), keys=(("lang", ("de",)),)
    )


def test_items_are_what_they_are_said_to_be() -> None:
    def items(*values: Any, **given: list[str]) -> tuple[Any, ...]:
        return question("frequency", {"item": list(values), **given}).items

    assert items("cats", "x1") == ("cats", "x1") and items("5", **{"as": ["text"]}) == ("5",)
    assert items("5", **{"as": ["whole"]}) == (5,) and items("5", **{"as": ["number"]}) == (5.0,)
    assert items(5, True, 2.5) == (5, True, 2.5)
    for text in ("5", "-1.5", "1e5", "nan", "inf"):
        with pytest.raises(BadQuestion, match="as=text, as=whole or as=number"):
            item_of(*items(text), None, "bloom")


def test_the_column_decides_what_an_item_is() -> None:
    def read(text: str, kind: str | None) -> Any:
        (item,) = question("membership", {"item": [text]}).items
        return item_of(item, kind, "bloom")

    day = datetime(2026, 1, 1)
    for text, kind, value in (
        ("5", "string", "5"),
        ("5", "long", 5),
        ("-7", "long", -7),
        ("true", "long", True),
        ("5", "double", 5),
        ("1e3", "double", 1000.0),
        ("2026-01-01", "timestamp", day),
        ("2026-01-01T00:00:00Z", "timestamp", day.replace(tzinfo=UTC)),
        ("12:30", "time", time(12, 30)),
        ("cats", None, "cats"),
    ):
        result = read(text, kind)
        assert result == value and type(result) is type(value), text
    for text, kind in (("cats", "long"), ("5", "timestamp"), ("2026-01-01", "double"), ("1s", "duration")):
        with pytest.raises(SketchError, match="bloom: holds"):
            read(text, kind)


def test_a_body_asks_as_a_url_does() -> None:
    body = {"last": "1h", "key": {"lang": ["en", None], "n": 5}, "q": [0.5, 0.9], "column": None}
    assert from_json(json.dumps(body).encode()) == {
        "last": ["1h"],
        "key.lang": ["en", None],
        "key.n": [5],
        "q": [0.5, 0.9],
    }
    for broken in (b"{", b"[1]", b'{"key": 5}'):
        with pytest.raises(BadQuestion):
            from_json(broken)


@each(
    ("kind", "given", "said"),
    [
        ("top", {}, "there are rows, distinct, top-k"),
        ("top-k", {"colum": ["x"]}, 'did you mean "column"'),
        ("rows", {"zzz": ["x"]}, "it takes columns, from"),
        ("rows", {"column": ["x"]}, "rows takes no parameter"),
        ("rows", {"from": ["yesterday"]}, "'yesterday' is not a time"),
        ("rows", {"from": ["2026-02-01"], "to": ["2026-01-01"]}, "from must be before to"),
        ("rows", {"last": ["1h"], "from": ["2026-01-01"]}, "leave out from="),
        ("rows", {"last": ["an hour"]}, "is not a duration"),
        ("rows", {"every": ["0s"]}, "longer than nothing"),
        ("rows", {"limit": ["0"]}, "whole number from 1"),
        ("rows", {"limit": [1.5]}, "whole number from 1"),
        ("rows", {"open": ["maybe"]}, "true or false"),
        ("rows", {"last": ["1h", "2h"]}, "given 2 times"),
        ("quantiles", {"q": ["1.1"]}, "from 0 to 1"),
        ("quantiles", {"q": ["nan"]}, "from 0 to 1"),
        ("cdf", {}, "cdf needs x="),
        ("cdf", {"x": ["abc"]}, "must be a number"),
        ("frequency", {}, "frequency needs item="),
        ("frequency", {"item": ["x"], "as": ["integer"]}, "text, whole or number"),
        ("frequency", {"item": [None]}, "must be a text"),
        ("rows", {"by": [5]}, "must be a name"),
    ],
)
def test_what_can_not_be_asked_is_said(kind: str, given: dict[str, list[Any]], said: str) -> None:
    with pytest.raises(BadQuestion, match=said):
        question(kind, given)
