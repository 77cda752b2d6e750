"""`CREATE ALERT`: the rules that it becomes, what they say, and what no rule can be."""

from __future__ import annotations

import pytest

import streamgauge as sg
from streamgauge.queries.sql.errors import SqlError

from ....cases import each
from ..scripts import DECLARED, START, last_rows, outcomes

LATENCIES = f"""
{DECLARED}
CREATE ALERT slow AS SELECT lang, AVG(price) AS latency FROM posts WINDOW TUMBLING (SIZE 1 MINUTE)
  GROUP BY lang HAVING AVG(price) > 10 AND COUNT(*) >= 2 WITH (HOLD = '2m', CLEAR = 5, TO = 'alarms');
INSERT INTO posts (ts, lang, price) VALUES
  {
    ", ".join(
        f"({START + minute * 60_000 + n}, 'en', {price})"
        for minute, price in enumerate((20, 20, 20, 7, 4, 20))
        for n in range(2)
    )
},
  ({START}, 'fi', 99), ({START + 400_000}, 'en', 1);
"""


def sinks_of(text: str) -> object:
    """The one rule of an alert over the declared streams, and where it goes."""
    stream = sg.sql(f"{DECLARED} {text}")
    (alerting,) = stream.sinks
    (rule,) = alerting.rules
    return rule, alerting.to[0].to


def test_it_fires_once_when_it_has_held_and_clears() -> None:
    rows = last_rows(LATENCIES + "SELECT state, key, at, value, why FROM slow EMIT CHANGES")
    assert [row[:4] for row in rows] == [
        ["fired", "en", "2026-01-01T00:02:00", 20.0],
        ["cleared", "en", "2026-01-01T00:05:00", 4.0],
    ]
    assert rows[0][4] == "latency is 20: above 10 for 2m"
    assert (
        outcomes(LATENCIES + "ASSERT VALUES slow (state, rule) VALUES ('fired', 'slow');")[-1].kind == "done"
    )
    assert ["slow", "alarms"] in last_rows(LATENCIES + "SHOW QUERIES")


GROUPED = "FROM posts WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY lang"


@pytest.mark.parametrize(
    ("having", "rule"),
    [
        ("COUNT(*) >= 3", sg.rules.Threshold("x", value="count", at_least=3)),
        ("3 > COUNT(*)", sg.rules.Threshold("x", value="count", below=3)),
        (
            "LOWER_BOUND(APPROX_COUNT_DISTINCT(usr)) > 1000",
            sg.rules.Threshold("x", value="approx_count_distinct", above=1000, surely=True),
        ),
        (
            "UPPER_BOUND(users) < 5",
            sg.rules.Threshold("x", value="users", below=5, surely=True),
        ),
        (
            "PERCENTILE_APPROX(price, 0.99) > 1.5 AND COUNT(*) >= 100",
            sg.rules.Threshold("x", value="percentile_approx.p99", above=1.5, support={"count": 100}),
        ),
        (
            "SUM(n) * 1.0 / COUNT(*) > 0.05 AND COUNT(*) >= 100",
            sg.rules.Ratio("x", value="sum", to="count", above=0.05, least=100),
        ),
    ],
)
def test_the_rule_that_a_having_is(having: str, rule: object) -> None:
    users = ", APPROX_COUNT_DISTINCT(usr) AS users" if "users" in having else ""
    text = f"CREATE ALERT x AS SELECT lang{users} {GROUPED} HAVING {having}"
    assert sinks_of(text) == (rule, "x")
    timed = sinks_of(f"{text} WITH (HOLD='3m', RELEASE='1m', COOLDOWN='1h', TO='t')")
    assert (timed[0].hold, timed[0].release, timed[0].cooldown, timed[1]) == ("3m", "1m", "1h", "t")


def test_its_python_is_printed() -> None:
    text = f"EXPLAIN CREATE ALERT x AS SELECT lang {GROUPED} HAVING COUNT(*) < 3 WITH (CLEAR = 4)"
    ((source,),) = last_rows(f"{DECLARED} {text}")
    names: dict[str, object] = {}
    exec(source, names)
    assert names["rule"] == sg.rules.Threshold("x", value="count", below=3, clear=4.0)
    assert names["alerting"].to == [sg.rules.AlertsToKafka("x")]


@each(
    ("text", "message"),
    [
        (f"SELECT lang, COUNT(*) AS n {GROUPED}", "must say when it fires"),
        (f"SELECT lang {GROUPED} HAVING COUNT(*) > 3 OR COUNT(*) < 1", "holds an aggregate, a bound"),
        (f"SELECT lang {GROUPED} HAVING COUNT(*) > SUM(n)", "the limit of an alert must be a constant"),
        (f"SELECT lang {GROUPED} HAVING COUNT(*) > '3'", "be compared"),
        (f"SELECT lang {GROUPED} HAVING LOWER_BOUND(COUNT(*)) < 3", r"LOWER_BOUND\(…\) > number"),
        (
            f"SELECT lang {GROUPED} HAVING SUM(n) > 3 AND COUNT(*) < 3",
            "require that another aggregate reaches a number",
        ),
        (f"SELECT lang {GROUPED} HAVING PERCENTILE_APPROX(n, 0.77) > 3", "one percentile, one of"),
        (f"SELECT lang {GROUPED} HAVING COUNT(*) > 3 WITH (HOLD='x')", "x"),
        (f"SELECT lang {GROUPED} HAVING COUNT(*) > 3 WITH (CLEAR='x')", "x"),
        (f"SELECT lang {GROUPED} HAVING COUNT(*) > 3 WITH (CLEAR=5)", "clear must be below"),
        (f"SELECT lang {GROUPED} HAVING COUNT(*) > 3 WITH (HELD='1m')", "did you mean HOLD"),
        (f"SELECT lang {GROUPED} HAVING COUNT(*) > 3 LIMIT 3", "LIMIT ends a query"),
    ],
)
def test_what_no_rule_can_be(text: str, message: str) -> None:
    with pytest.raises(SqlError, match=message):
        last_rows(f"{DECLARED} CREATE ALERT x AS {text}")


def test_a_query_is_ended_and_a_script_runs_another(tmp_path) -> None:
    first = tmp_path / "first.sql"
    first.write_text(LATENCIES)
    again = f"RUN SCRIPT '{first}'; TERMINATE slow; SHOW QUERIES"
    assert last_rows(again) == []
    assert len(last_rows(f"RUN SCRIPT '{first}'; TERMINATE ALL; SELECT state FROM slow")) == 2
    for text, message in (
        (f"RUN SCRIPT '{first}'; TERMINATE slower", "did you mean slow?"),
        (f"RUN SCRIPT '{tmp_path / 'none.sql'}'", "No such file"),
    ):
        with pytest.raises(SqlError, match=message):
            last_rows(text)
    first.write_text(f"RUN SCRIPT '{first}'; SHOW TOPICS")
    result = outcomes(f"RUN SCRIPT '{first}'; SHOW STREAMS")
    assert [one.kind for one in result] == ["error"] and "runs itself" in result[0].error.message
