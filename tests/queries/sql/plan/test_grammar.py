"""No part of a statement is left out: each changes the plan, or is refused at its place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlglot import exp

from streamgauge.queries.sql.errors import SqlError
from streamgauge.queries.sql.parse.dialect import statements_of
from streamgauge.queries.sql.parse.grammar import check_grammar
from streamgauge.queries.sql.parse.nodes import WindowClause, WindowedTable
from streamgauge.queries.sql.plan.logical_plan import LogicalPlan

from ..scripts import declared_planner

W = "WINDOW TUMBLING (SIZE 1 MINUTE)"
STATEMENTS = [
    "SELECT usr AS who, n / 2 AS half, tags[1] AS tag FROM posts p WHERE meta->a > 3 AND p.meta.b LIKE 'x%'",
    "SELECT *, CASE n WHEN 1 THEN 'a' ELSE 'b' END AS size FROM posts WHERE n NOT BETWEEN 2 AND 5 LIMIT 3",
    "SELECT CASE WHEN n > 3 THEN 'big' END AS size, CAST(usr AS INT) AS x, TRY_CAST(lang AS DOUBLE) AS y"
    " FROM posts",
    "SELECT EXTRACT(HOUR FROM ROWTIME) AS h, TRIM(LEADING 'x' FROM usr) AS t, SUBSTRING(usr FROM 2 FOR 3)"
    " AS s, POSITION('a' IN usr) AS at, ROWTIME + INTERVAL '5' MINUTE AS later FROM posts EMIT CHANGES",
    "SELECT n BETWEEN SYMMETRIC 3 AND 1 AS b, usr LIKE 'a!%' ESCAPE '!' AS c, n IN (1, 2) AS d,"
    " -n || lang AS e FROM posts",
    "SELECT p.usr, u.region, c.page FROM posts p JOIN clicks c WITHIN 10 MINUTES ON p.usr = c.usr"
    " LEFT JOIN users u ON p.usr = u.usr WHERE u.usr IS NULL",
    "SELECT p.usr AS a, c.usr AS b FROM posts p FULL OUTER JOIN clicks c WITHIN 10 MINUTES ON p.usr = c.usr",
    "SELECT usr, tag FROM posts LEFT JOIN UNNEST(tags) AS t(tag) ON TRUE",
    "SELECT ROWTIME AT TIME ZONE 'Asia/Tokyo' AS t, usr RLIKE 'a' AS r, STRUCT(a := n, b := usr) AS s,"
    " TIMESTAMPADD(DAY, 2, ROWTIME) AS d, ROWTIME + INTERVAL '2' MONTH AS m FROM posts",
    "SELECT EXPLODE(tags) AS a, EXPLODE(ARRAY[n, 2]) AS b FROM posts",
    f"SELECT UPPER(lang) AS l, COUNT(*) FILTER (WHERE n > 2) AS c, QUANTILES(price, ranks => 0.5) AS q"
    f" FROM posts {W} GROUP BY UPPER(lang) HAVING COUNT(*) > 2 AND LOWER_BOUND(SUM(n)) > 1"
    " ORDER BY c DESC NULLS FIRST, l LIMIT 5",
    "SELECT usr, COUNT(*) AS n FROM TABLE(SESSION(TABLE posts PARTITION BY usr, DESCRIPTOR(ts), INTERVAL '5'"
    " MINUTE)) GROUP BY usr, window_start, window_end",
    "SELECT window.start, COUNT(usr) AS n FROM posts GROUP BY window(ts, '1 minute', INTERVAL '20' SECONDS)",
    "SELECT COUNT(*) AS n FROM posts WINDOW HOPPING (SIZE 1 HOUR, ADVANCE BY 5 MINUTES, GRACE PERIOD"
    " 1 MINUTE) EMIT FINAL",
]
SHORTER = {
    *((exp.Column, "table"), (exp.Column, "db")),  # of a name that only one stream has
    *((exp.TableAlias, "this"), (exp.Join, "on"), (exp.Join, "side")),  # of an UNNEST, and FULL before OUTER
    *((exp.Literal, "is_string"), (exp.TryCast, "safe")),  # INTERVAL 5 MINUTE
    (exp.Anonymous, "expressions"),  # COUNT()
    *(
        (WindowClause, "kind"),
        (WindowedTable, "time"),
        (exp.Identifier, "this"),
    ),  # always set
}
"""What may be left out of a statement, and means the same."""
SAME = {
    (exp.Identifier, "quoted"),  # of a name that is written as it was declared
    (exp.Table, "alias"),  # where columns don't say of which table they are
    (exp.Alias, "alias"),
    (exp.Join, "kind"),  # OUTER behind FULL
    (exp.Array, "bracket_notation"),
    (exp.DataType, "nested"),
    (exp.DPipe, "safe"),
}
"""What may be put into a statement, or left out, and means the same."""

NO_NAMES = (("db", None), ("catalog", None))
"""Parts of a name behind which there is none."""


def meaning(select: exp.Select) -> Any:
    """What a plan is, to be compared."""
    plan: LogicalPlan = declared_planner().plan(select)
    chosen = plan.selection
    read = chosen and (
        [(one.name, str(one.value), str(one.lower)) for one in chosen.outputs],
        str(chosen.having),
        chosen.order,
        chosen.limit,
        dict(chosen.ranks),
    )
    return plan.source, plan.push, plan.limit, dict(plan.columns), read, plan.stream.fingerprint()


def parsed(statement: str) -> exp.Select:
    (one,) = statements_of(statement)
    return one.node.select


def altered(select: exp.Select, novel: bool) -> Iterator[tuple[str, exp.Select]]:
    """The tree with one more argument in one place, or with one less."""
    for at, node in enumerate(select.walk()):
        names = [*node.arg_types, "of_next_year"] if novel else list(node.args)
        for name in names:
            was = node.args.get(name)
            empty = was is None or was is False or was == []
            if (name, node.args.get({"db": "table", "catalog": "db"}.get(name, "this"))) in NO_NAMES:
                continue
            if (type(node), name) in (SAME if novel else SAME | SHORTER) or empty != novel:
                continue
            for value in (exp.to_identifier("x"), [exp.Var(this="X")], True) if novel else (None,):
                tree = select.copy()
                there = list(tree.walk())[at]
                there.args[name] = value.copy() if isinstance(value, exp.Expr) else value
                yield f"{name} of {type(node).__name__} = {value}", tree


@pytest.mark.slow
def test_an_argument_that_nobody_reads_is_refused() -> None:
    """Each argument that sqlglot's classes have, and one that none has yet, in every place of a statement."""
    ignored, tried = [], 0
    for statement in STATEMENTS:
        select = parsed(statement)
        check_grammar(select)
        plain = meaning(select)
        for what, tree in altered(select, novel=True):
            tried += 1
            try:
                check_grammar(tree)
            except SqlError:
                continue
            try:
                if meaning(tree) == plain:
                    ignored.append((statement, what))
            except (SqlError, AttributeError, TypeError, ValueError):
                continue
    assert not ignored, "\n".join(f"{statement}: {what}" for statement, what in ignored)
    assert tried > 3_000


@pytest.mark.slow
def test_no_part_of_a_statement_is_left_out() -> None:
    """Without any one of its parts, a statement means something else, or nothing."""
    ignored = []
    for statement in STATEMENTS:
        select = parsed(statement)
        plain = meaning(select)
        for what, tree in altered(select, novel=False):
            try:
                if meaning(tree) == plain:
                    ignored.append((statement, what))
            except Exception:
                continue
    assert not ignored, "\n".join(f"{statement}: {what}" for statement, what in ignored)
