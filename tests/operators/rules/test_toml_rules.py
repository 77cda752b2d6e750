"""Rules in TOML: those of Python, and errors that say where and what."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from streamgauge.operators.rules.toml_rules import rules_of
from streamgauge.rules import Absence, Change, Flatline, NewTerm, Ratio, Threshold, read_rules

from ...cases import each

TEXT = """
# What our sensors must not do.
[[rule]]
name = "hot"
kind = "threshold"
about = "temperature"
value = "temperature"
above = 78
clear = 76.5
hold = "10m"
surely = true
where = { room = ["a", "b"] }

[[rule]]      # a comment
name = "errors"
kind = "ratio"
value = "errors"
to = "requests"
at_least = 0.05
least = 100

[[rule]]
name = "jump"
kind = "change"
value = "temperature"
against = "last"
by = "distance"
above = 5
every = true

[[rule]]
name = "dead"
kind = "absence"
longer = "2h"

[[rule]]
name = "stuck"
kind = "flatline"
value = "temperature"
longer = "6h"

[[rule]]
name = "new agent"
kind = "newterm"
learn = "1d"
most = 500
"""


def test_a_file_says_what_python_says(tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text(TEXT)
    assert read_rules(tmp_path / "rules.toml") == [
        Threshold(
            "hot",
            kind="temperature",
            value="temperature",
            above=78,
            clear=76.5,
            hold="10m",
            surely=True,
            where={"room": ["a", "b"]},
        ),
        Ratio("errors", value="errors", to="requests", at_least=0.05, least=100),
        Change("jump", value="temperature", against="last", by="distance", above=5, every=True),
        Absence("dead", longer="2h"),
        Flatline("stuck", value="temperature", longer="6h"),
        NewTerm("new agent", learn="1d", most=500),
    ]
    assert Threshold("a", value="n", above=1, hold=timedelta(minutes=1)).holds.hold_us == 60_000_000


STUCK = "[[rule]]\nname = 'a'\nkind = 'flatline'\nvalue = 't'\nlonger = '1h'\n"
CHANGE = "[[rule]]\nname = 'a'\nkind = 'change'\nvalue = 't'\nabove = 2\n"
HOT = '[[rule]]\nname = "hot"\nkind = "threshold"\nvalue = "t"\n'


@each(
    ("text", "said"),
    [
        ("[[rule]\n", "rules: not TOML: Expected ']]'"),
        ("[[rules]]\n", "'rules' is not known here; write each rule as [[rule]]"),
        ("[rule]\nname = 'a'\n", "write each rule as [[rule]], with two brackets"),
        ("\n\n[[rule]]\nkind = 'absence'\n", "rules, line 3: a rule without a name"),
        ("[[rule]]\nname = 'a'\n", "rules, line 1: the rule 'a': kind must be one of threshold, ratio, "),
        (
            f"{HOT}abve = 1\n",
            "'abve' is not a field of threshold; it has name, where, ",
        ),
        (HOT, "rules, line 1: the rule 'hot': none is given; give one of above, at_least, below and at_most"),
        (f"{HOT}above = 1\nbelow = 2\n", "above and below are given"),
        (f"{HOT}above = 'x'\n", "above must be a number, got 'x'"),
        (f"{HOT}above = nan\n", "above must be a finite number, got nan"),
        (f"{HOT}above = 1\nclear = 2\n", "clear must be below the limit above 1, got 2"),
        (f"{HOT}below = 1\nclear = 0.5\n", "clear must be above the limit below 1, got 0.5"),
        (
            f"{HOT}above = 1\nhold = '5 minutes'\n",
            "hold: '5 minutes' is not a duration",
        ),
        (f"{HOT}above = 1\nevery = 1\n", "every must be true or false, got 1"),
        (f"{HOT}above = 1\nhold = true\n", "hold can't be true or false, got True"),
        (f"{HOT}above = 1\nevery = true\nclear = 0\n", "every=True reports each row"),
        (f"{HOT}above = 1\n{HOT}above = 1\n", "rules, line 6: there is another rule of the name 'hot'"),
        ("[[rule]]\nname = 'a'\nkind = 'absence'\n", "longer: '' is not a duration"),
        (
            f"{STUCK}above = 2\n",
            "above is given",
        ),
        (
            f"{CHANGE}against = 'mode'\n",
            "against must be one of mean, ewma, hour, last, first, low, high, got 'mode'",
        ),
        (
            f"{CHANGE}against = 'last'\n",
            "needs a spread",
        ),
        (
            "[[rule]]\nname = 'a'\nkind = 'ratio'\nvalue = 't'\nabove = 2\n",
            "to must name an answer of the stream, got ''",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, said: str) -> None:
    with pytest.raises(ValueError) as refused:
        rules_of(text)
    assert said in str(refused.value)
