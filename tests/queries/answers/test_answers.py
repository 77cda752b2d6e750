"""Every answer is that of `merge` and `query` over the same windows, or of the sketches in them."""

from __future__ import annotations

import itertools
import random
import time
from datetime import timedelta
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from streamgauge.operators.table.query import query
from streamgauge.operators.table.schema import END, START, schema_of
from streamgauge.operators.table.sets import compare
from streamgauge.operators.table.sketch_table import merge
from streamgauge.queries.answers.answers import Limits, TooMuch, answer, standing
from streamgauge.queries.question.question import BadQuestion, question
from streamgauge.queries.views.merge_cache import Deadline, MergeCache, OutOfTime
from streamgauge.queries.views.view import TableView

from ...cases import each
from ..logs import START as BEGIN
from ..logs import STREAM, Fed, deltas, expected, messages, rows

ROWS = rows(seed=5, minutes=20)
KEPT = MergeCache()
# Whose merges give the same bytes in whatever order they are done.
FIRM = ["posts", "users", "people", "prices", "often", "seen", "some", "spent", "opened"]


@cache
def posts_view() -> TableView:
    return Fed(partitions=2).feed(messages(deltas(ROWS), 2)).table.view()


@cache
def posts_table() -> pa.Table:
    return pa.concat_tables([table for tables in expected(deltas(ROWS)) for table in tables])


def ask(kind: str, view: TableView | None = None, **given: Any) -> pl.DataFrame:
    requested = {name.replace("_", "-").replace("key-", "key."): list(v) for name, v in given.items()}
    return answer(view or posts_view(), question(kind, requested), KEPT).rows


def span(table: pa.Table, low: int, high: int) -> pa.Table:
    since, until = BEGIN + timedelta(minutes=low), BEGIN + timedelta(minutes=high)
    return table.filter(pc.and_(pc.greater_equal(table[START], since), pc.less_equal(table[END], until)))


def whole(table: pa.Table, by: list[str]) -> pa.Table:
    """One window of all, by `merge`: the span is shorter than this length."""
    return merge(table, by=by, every="100d")


def test_rows_are_those_of_query() -> None:
    order = [START, "lang"]
    answers, wanted = ask("rows").sort(order), query(posts_table()).sort(order)
    assert answers.equals(wanted)
    assert ask("rows", columns=["posts", "tags"]).columns == [START, END, "lang", "posts", "tags"]


@pytest.mark.parametrize("by", [["lang"], []])
@pytest.mark.parametrize("every", ["5m", "span"])
def test_rows_merged_are_those_of_merge(by: list[str], every: str) -> None:
    chance = random.Random(3)
    for _ in range(4):
        low = chance.randrange(19)
        high = chance.randrange(low + 1, 21)
        times = [(BEGIN + timedelta(minutes=at)).isoformat() for at in (low, high)]
        part = span(posts_table(), low, high)
        wanted = query(merge(part, by=by, every=every) if every != "span" else whole(part, by))
        names = ["from", "to", "every", "by", "columns"]
        given = dict(zip(names, [[times[0]], [times[1]], [every], by or ["none"], FIRM]))
        result = answer(posts_view(), question("rows", given), KEPT).rows
        own = [name for name in FIRM if name not in ("users", "some")]
        assert result.select(*by, *own).equals(wanted.select(*by, *own))
        # An estimate of HyperLogLog may differ in its last digits with the order of the merges.
        for name in ("users",):
            for field in ("estimate", "lower", "upper"):
                pairs = zip(result[name].struct.field(field), wanted[name].struct.field(field))
                assert all(one == pytest.approx(other, rel=1e-9) for one, other in pairs)
        assert result["some"].struct.field("n").equals(wanted["some"].struct.field("n"))
        samples = zip(result["some"].struct.field("values"), wanted["some"].struct.field("values"))
        assert all(sorted(one) == sorted(other) for one, other in samples)


def test_answers_are_the_same_whatever_was_asked_before() -> None:
    """Order matters to some merges (KLL, full frequent items): who has the same windows must agree."""
    warm = MergeCache()
    for last in ("3m", "7m", "20m", "11m"):
        for kind in ("quantiles", "top-k", "rows"):
            given = {"last": [last], **({"column": ["ranks"]} if kind == "quantiles" else {})}
            requested = question(kind, given)
            one, other = answer(posts_view(), requested, warm), answer(posts_view(), requested, MergeCache())
            assert one.rows.equals(other.rows)


def sketches(column: str, by: list[str]) -> list[Any]:
    requested = STREAM.aggregates[column]
    table = whole(posts_table(), by)
    groups = requested.groups(table.num_rows)
    groups.merge(np.arange(table.num_rows), table[column].combine_chunks())
    return [groups[number] for number in range(table.num_rows)]


def test_distinct() -> None:
    result = ask("distinct", column=["people"], by=["lang"])
    assert result["lang"].to_list() == ["", "de", "en", None]
    for row, sketch in zip(result.to_dicts(), sketches("people", ["lang"])):
        assert (row["estimate"], (row["lower"], row["upper"])) == (sketch.estimate(), sketch.bounds())
    true = ROWS["user"].n_unique()
    (row,) = ask("distinct", column=["users"]).to_dicts()
    assert row["lower"] <= true <= row["upper"]


def test_top_k() -> None:
    counts = ROWS["tag"].value_counts(sort=True)
    result = ask("top-k", k=["3"])
    true = dict(counts.iter_rows())
    assert result["rank"].to_list() == [1, 2, 3]
    assert [row["estimate"] for row in result.to_dicts()] == counts["count"].head(3).to_list()
    assert all(row["lower"] == true[row["item"]] == row["upper"] for row in result.to_dicts())
    (sketch,) = sketches("tags", [])
    assert result["item"].to_list() == [item.item for item in sketch.top(3)]


def test_quantiles_and_cdf() -> None:
    (sketch,) = sketches("prices", [])
    result = ask("quantiles", column=["prices"], q=["0", "0.5", "0.999", "1"])
    assert result["value"].to_list() == sketch.quantiles([0, 0.5, 0.999, 1])
    bounds = [sketch.quantile_bounds(q) for q in (0, 0.5, 0.999, 1)]
    assert list(result.select("lower", "upper").iter_rows()) == bounds
    result = ask("cdf", column=["prices"], x=["1", "-5", "1e9"])
    assert result["rank"].to_list() == [sketch.rank(x) for x in (1, -5, 1e9)]
    for x, lower, upper in result.select("x", "lower", "upper").iter_rows():
        assert lower <= (ROWS["price"] <= x).mean() <= upper
    # KLL's bounds hold whichever way it was merged.
    users = ROWS["user"].sort()
    for q, lower, upper in ask("quantiles", column=["ranks"]).select("q", "lower", "upper").iter_rows():
        assert lower <= users[int(q * (len(users) - 1))] <= upper


def test_frequency_and_membership() -> None:
    result = ask("frequency", column=["often"], item=["t1", "nope"])
    (sketch,) = sketches("often", [])
    assert [tuple(row) for row in result.select("estimate", "lower", "upper").iter_rows()] == [
        (sketch.estimate(item), *sketch.bounds(item)) for item in ("t1", "nope")
    ]
    assert ask("frequency", column=["tags"], item=["t1"])["estimate"].item() == (ROWS["tag"] == "t1").sum()
    result = ask("membership", item=["1", "4000"], **{"as": ["whole"]})
    assert result["found"].to_list() == [True, False] and result["false_positives"].max() < 0.01


def test_the_column_knows_what_an_item_is() -> None:
    for items in (["1", "4000"], ["1.0", "4000"], [1, 4000], [1.0, 4000.0]):
        result = ask("membership", item=items)
        assert result["found"].to_list() == [True, False] and result["item"].to_list() == [1, 4000]
    assert ask("frequency", column=["often"], item=["5"])["estimate"].to_list() == [0]
    for given in (
        {"item": ["1"], "as": ["text"]},
        {"item": ["nope"]},
        {"item": ["1.5"]},
        {"item": ["2026-01-01"]},
    ):
        with pytest.raises(BadQuestion, match="seen: bloom: holds whole numbers"):
            ask("membership", **given)
    with pytest.raises(BadQuestion, match="often: count-min: holds texts"):
        ask("frequency", column=["often"], item=["5"], **{"as": ["whole"]})


def test_sample() -> None:
    (row,) = ask("sample").to_dicts()
    (sketch,) = sketches("some", [])
    assert row["n"] == ROWS.height == sketch.n
    assert sorted(row["values"]) == sorted(sketch.values().to_pylist()) and row["error"] == sketch.error()


def test_sets() -> None:
    given = {"key.lang": ["en"], "other-key.lang": ["de"]}
    result = answer(posts_view(), question("sets", given), KEPT).rows
    parts = [posts_table().filter(pc.equal(posts_table()["lang"], lang)) for lang in ("en", "de")]
    wanted = compare(parts[0], "people", "people", parts[1], by=[]).to_dicts()[0]
    assert {row.pop("set"): row for row in result.to_dicts()} == wanted
    middle = (BEGIN + timedelta(minutes=10)).isoformat()
    given = {"to": [middle], "other-from": [middle], "by": ["lang"]}
    result = answer(posts_view(), question("sets", given), KEPT).rows
    wanted = compare(span(posts_table(), 0, 10), "people", "people", span(posts_table(), 10, 20), by=["lang"])
    assert result.filter(pl.col("set") == "union")["estimate"].to_list() == [
        row["estimate"] for row in wanted["union"]
    ]
    apart = ask("sets", every=["10m"], by=["lang"])
    assert apart.height == 2 * 4 * 4 and apart.columns[:3] == [START, END, "lang"]


def test_groups_by_the_values_of_their_keys() -> None:
    def posts(**given: list[str]) -> int:
        named = {name.replace("key_", "key."): values for name, values in given.items()}
        result = answer(
            posts_view(), question("rows", {**named, "every": ["span"], "by": ["none"]}), KEPT
        ).rows
        return result["posts"].sum()

    counts = {lang: (ROWS["lang"] == lang).sum() for lang in ("en", "de", "")}
    assert posts(key_lang=["en"]) == counts["en"]
    assert posts(key_lang=["en", "de"]) == counts["en"] + counts["de"]
    assert posts(key_lang=[""]) == counts[""]
    assert posts(null=["lang"]) == ROWS["lang"].null_count()
    assert posts(null=["lang"], key_lang=["en"]) == ROWS["lang"].null_count() + counts["en"]
    assert posts(key_lang=["xx"]) == 0


def test_rows_in_an_order() -> None:
    result = ask("rows", every=["span"], order=["-posts"], limit=["2"])
    counts = ROWS["lang"].value_counts(sort=True)
    assert result["posts"].to_list() == counts["count"].head(2).to_list()
    assert result["lang"].to_list() == counts["lang"].head(2).to_list()
    up = ask("rows", every=["span"], order=["users"])["users"].struct.field("estimate").to_list()
    assert up == sorted(up)
    assert ask("rows", every=["span"], order=["-lang"])["lang"].to_list() == ["en", "de", "", None]
    assert ask("rows", limit=["3"]).height == 3


def test_spans_and_what_an_answer_stands_on() -> None:
    last = answer(posts_view(), question("distinct", {"column": ["users"], "last": ["5m"]}), KEPT)
    assert (last.windows, last.since, last.until) == (
        5,
        BEGIN + timedelta(minutes=15),
        BEGIN + timedelta(minutes=20),
    )
    assert last.open and not last.final and last.lag == 0 and last.stale is None
    closed = answer(posts_view(), question("rows", {"open": ["false"]}), KEPT)
    assert not closed.open and closed.final and closed.watermark is not None
    assert closed.until is not None and closed.until <= closed.watermark
    # Final windows alone don't make an answer final: a window of the span may not have begun.
    later = {"from": ["2026-01-01T00:00"], "to": ["2026-01-02"], "open": ["false"]}
    assert not answer(posts_view(), question("rows", later), KEPT).final
    nothing = answer(posts_view(), question("top-k", {"from": ["2027-01-01"]}), KEPT)
    assert (nothing.rows.height, nothing.windows, nothing.since) == (0, 0, None)
    assert standing(posts_view())["windows"] == 20


@each(
    ("kind", "given", "said"),
    [
        (
            "top-k",
            {"column": ["users"]},
            "users is a distinct, which can't answer top-k; columns that can: tags",
        ),
        ("distinct", {}, "set column= to one of users, people"),
        ("distinct", {"column": ["nope"]}, "nope is not a column"),
        ("rows", {"columns": ["nope"]}, "nope is not a column"),
        ("rows", {"by": ["nope"]}, "its keys are lang"),
        ("rows", {"key.nope": ["1"]}, "nope is not a key of this table; its keys are lang"),
        ("rows", {"every": ["90s"]}, "don't fit into windows of 1m30s"),
        ("rows", {"order": ["nope"]}, "order: nope"),
        ("rows", {"order": ["tags"]}, "have no order"),
        ("frequency", {"column": ["tags"], "item": ["5"], "as": ["whole"]}, "tags"),
    ],
)
def test_what_a_table_can_not_be_asked_is_said(kind: str, given: dict[str, list[str]], said: str) -> None:
    with pytest.raises(BadQuestion, match=said.replace("(", r"\(")):
        answer(posts_view(), question(kind, given), KEPT)


def test_limits() -> None:
    for limits, said in (
        (Limits(windows=3), "20 windows"),
        (Limits(rows=10), "windows and groups"),
        (Limits(answers=2), "limit="),
    ):
        with pytest.raises(TooMuch, match=said):
            answer(posts_view(), question("rows", {}), KEPT, limits)
    with pytest.raises(OutOfTime):
        answer(
            posts_view(),
            question("distinct", {"column": ["users"]}),
            MergeCache(),
            deadline=Deadline(time.monotonic() - 1),
        )


def test_a_table_without_any_window() -> None:
    empty = TableView("posts", schema_of(STREAM), (), 1)
    for kind, given in (
        ("rows", {}),
        ("top-k", {}),
        ("sets", {}),
        ("quantiles", {"column": ["prices"]}),
        ("sample", {}),
    ):
        result = answer(empty, question(kind, given), KEPT)
        assert result.rows.height == 0 and not result.final


@pytest.mark.slow
@each(
    ("columns", "order"),
    [
        ([], "-users"),
        *itertools.product(
            [["order"], ["order", "tags", "some"]], ["-posts", "posts", "-users", "spent", "-seen"]
        ),
    ],
)
def test_the_first_of_an_order_are_those_of_all_rows_in_order(order: str, columns: list[str]) -> None:
    named = [order.removeprefix("-") if name == "order" else name for name in columns]
    # KLL draws other numbers where it merges other groups beside; its bounds hold all the same.
    named = named or [name for name in STREAM.aggregates if name != "ranks"]
    given = {"every": ["span"], "order": [order], "columns": named}
    whole = answer(posts_view(), question("rows", given), MergeCache()).rows
    for keys, limit in (({}, 3), ({}, 50), ({"key.lang": ["en", ""], "null": ["lang"]}, 2)):
        result = answer(posts_view(), question("rows", {**given, **keys, "limit": [str(limit)]}), KEPT).rows
        wanted = answer(posts_view(), question("rows", {**given, **keys}), MergeCache()).rows.head(limit)
        assert result.equals(wanted) and (keys or result.equals(whole.head(limit)))
