"""The first groups by distinct values are those of merging all groups, to the last bit."""

from __future__ import annotations

import itertools
import random
from datetime import timedelta
from typing import Any

import polars as pl
import pytest

from streamgauge.operators.definition.aggregates import count, distinct, distinct_set
from streamgauge.operators.definition.stream import Stream
from streamgauge.queries.answers.answers import answer
from streamgauge.queries.question.question import question
from streamgauge.queries.views.merge_cache import MergeCache
from streamgauge.queries.views.view import TableView

from ..logs import START, Fed, deltas, messages

COLUMNS = {"at": pl.Datetime("us", "UTC"), "lang": pl.String, "place": pl.Int64, "user": pl.Int64}
STREAM = (
    Stream.from_schema(COLUMNS, time="at")
    .group_by("lang", "place")
    .tumbling("1m", delay="5s")
    .agg(posts=count(), users=distinct("user", lg_k=10), sets=distinct_set("user", lg_k=10))
)
GROUPS = 1_500


def rows(kind: str, seed: int, minutes: int) -> pl.DataFrame:
    """Posts of many groups: some large, all alike, or with the same users again and again."""
    chance = random.Random(seed)
    collected = []
    for minute, group in itertools.product(range(minutes), range(GROUPS)):
        if chance.random() < (0.02 if kind == "alike" else 0.4):
            continue
        n = {"some large": int(chance.paretovariate(0.8)), "alike": 1, "again": 1 + 2000 // (group + 9)}[kind]
        for _ in range(min(n, 300)):
            user = {"alike": minute, "again": chance.randrange(1 + 4 * n)}.get(
                kind, chance.randrange(1 << 40)
            )
            # Some come late: their window is open again, or is merged of several deltas.
            at = START + timedelta(minutes=minute, seconds=chance.random() * 60 - 4 * chance.random())
            collected.append((max(at, START), [None, "en", "de"][group % 3], group, user))
    return pl.DataFrame(collected, schema=COLUMNS, orient="row")


def answer_to(view: TableView, limit: int, given: dict[str, Any]) -> pl.DataFrame:
    parameters = {"every": ["span"], "order": ["-users"], "limit": [str(limit)], **given}
    return answer(view, question("rows", parameters), MergeCache()).rows


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["some large", "alike", "again"])
def test_the_first_are_those_of_merging_all(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    log = messages(deltas(rows(kind, 1, 5), cut=1_500, stream=STREAM), 2)
    fed = Fed(partitions=2, stream=STREAM)
    step = len(log) // 3
    questions: list[tuple[int, dict[str, Any]]] = [
        (10, {}),
        (3, {"columns": ["users"]}),
        (25, {"last": ["3m"], "columns": ["posts", "users"]}),
        (7, {"key.lang": ["en"], "null": ["lang"], "open": ["false"]}),
        (1_000, {}),
        (5, {"by": ["place"]}),
    ]
    for at in range(0, len(log), step):
        view = fed.feed(log[at : at + step]).table.view()
        for limit, given in questions:
            result = answer_to(view, limit, given)
            with monkeypatch.context() as without:
                without.setattr(
                    "streamgauge.queries.answers.ordered_rows.top_candidates", lambda *given: None
                )
                wanted = answer_to(view, limit, given)
            assert result.equals(wanted) and result.height == min(limit, wanted.height)
            assert result.to_dicts() == wanted.to_dicts()
    # Where every group is as large as the others, all are merged; else few are.
    assert looked_for(view, monkeypatch) == (kind != "alike")


def looked_for(view: TableView, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the answer was found without merging all groups."""
    merged = []
    with monkeypatch.context() as watched:
        watched.setattr(MergeCache, "answered", lambda *given: merged.append(given) or pl.DataFrame())
        try:
            answer_to(view, 10, {"columns": ["users"]})
        except pl.exceptions.PolarsError:
            assert merged
    return not merged


def test_other_orders_and_families_are_merged_as_they_are() -> None:
    view = (
        Fed(stream=STREAM).feed(messages(deltas(rows("again", 2, 2), cut=3_000, stream=STREAM))).table.view()
    )
    up = answer_to(view, 10, {"order": ["users"]})["users"].struct.field("estimate").to_list()
    assert up == sorted(up)
    down = answer_to(view, 10, {"order": ["-sets"]})["sets"].struct.field("estimate").to_list()
    assert down == sorted(down, reverse=True)
