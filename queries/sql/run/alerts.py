"""``CREATE ALERT``: the rule for a query's HAVING, and the topic for its alerts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import polars as pl
from sqlglot import exp

from ....operators.rules.alerting import Alerting
from ....operators.rules.kinds.threshold import Ratio, Threshold
from ....operators.rules.outlets.to_topic import AlertsToKafka
from ....operators.rules.rule import LimitRule
from ....sketches.core.answers import USUAL_QUANTILES
from ..errors import error_at, errors_at
from ..parse.statements import CreateAlert
from ..plan.aggregates import RANKED, AggregateCall, constant
from ..plan.answer_reader import BOUNDS
from ..plan.catalog import Relation, check_options
from ..plan.clauses import conjuncts
from ..plan.logical_plan import LogicalPlan

_OPTIONS = ("TO", "HOLD", "RELEASE", "CLEAR", "COOLDOWN")
_LIMITS = {exp.GT: "above", exp.GTE: "at_least", exp.LT: "below", exp.LTE: "at_most"}
_MIRRORED = {exp.GT: exp.LT, exp.GTE: exp.LTE, exp.LT: exp.GT, exp.LTE: exp.GTE}
_SURELY = {"lower": ("above", "at_least"), "upper": ("below", "at_most")}
_CURE = (
    "HAVING of an alert holds an aggregate, a bound of it or a share of two against a number; for other "
    "rules write Python or TOML (docs/rules.md) over the stream that EXPLAIN prints"
)


@dataclass(frozen=True)
class _Compared:
    """An answer that is compared with a number: the path in the stream's answers, and the limit."""

    value: str
    limit: str
    at: float
    to: str = ""
    surely: bool = False


def alert_plan(node: CreateAlert, plan: LogicalPlan) -> tuple[LogicalPlan, str]:
    """A query's plan with the rule as its sink, and the topic of its alerts. Raises `SqlError`."""
    check_options(node.options, _OPTIONS)
    having = node.select.args.get("having")
    if having is None or plan.selection is None:
        raise error_at(node.name, f"an alert must say when it fires; {_CURE}")
    if plan.selection.order:
        raise error_at(node.select.args["order"].expressions[0], "ORDER BY: an alert has no rows to sort")
    if plan.limit is not None:
        raise error_at(node.name, "LIMIT ends a query: an alert continues; leave it out")
    aliases = {
        item.alias.lower(): item.this for item in node.select.expressions if isinstance(item, exp.Alias)
    }
    first, *rest = [_compared(one, plan.calls, aliases) for one in conjuncts(having.this)]
    given: dict[str, Any] = {"value": first.value}
    support: dict[str, float] = {}
    for one, condition in zip(rest, conjuncts(having.this)[1:]):
        if one.limit != "at_least" or one.to or one.surely:
            raise error_at(
                condition,
                "after the limit, AND can only require that another aggregate reaches a number: AND "
                "COUNT(*) >= 100",
            )
        support[one.value] = one.at
    if first.to:
        given["to"] = first.to
        if first.to in support:
            given["least"] = support.pop(first.to)
    given[first.limit] = first.at
    for name in _OPTIONS[1:]:
        if (word := node.options.get(name)) is not None:
            with errors_at(word):
                given[name.lower()] = float(word.value) if name == "CLEAR" else str(word)
    if first.surely:
        given["surely"] = True
    if support:
        given["support"] = support
    kind: type[LimitRule] = Ratio if first.to else Threshold
    topic = str(node.options.get("TO", node.name))
    with errors_at(having.this):
        alerting = Alerting([kind(str(node.name), **given)], to=[AlertsToKafka(topic)], name=str(node.name))
    fields = ", ".join(f"{name}={value!r}" for name, value in given.items())
    source = (
        f"{plan.source.partition(chr(10) + '# HAVING')[0]}\n"
        f"rule = sg.rules.{kind.__name__}({str(node.name)!r}, {fields})\n"
        f"alerting = sg.rules.Alerting([rule], to=[sg.rules.AlertsToKafka({topic!r})], "
        f"name={str(node.name)!r})"
    )
    # An alert's state belongs to its rule, which may have changed when a group resumes.
    stream = replace(plan.stream, compared={})
    return replace(plan, stream=stream, sinks=(alerting,), source=source), topic


def alert_relation(node: CreateAlert, plan: LogicalPlan, topic: str, text: str) -> Relation:
    """The stream of the alerts, from which they can be selected by name."""
    kinds = [plan.stream.columns[name] for name in plan.keys if name in plan.stream.columns]
    key = {} if not kinds else {"key": kinds[0] if len(kinds) == 1 else pl.List(pl.String())}
    columns = {
        "id": pl.String(),
        "state": pl.String(),
        **key,
        "at": pl.Datetime("us"),
        "since": pl.Datetime("us"),
        **dict.fromkeys(("value", "lower", "upper", "limit"), pl.Float64()),
        "rule": pl.String(),
        "why": pl.String(),
    }
    return Relation(str(node.name), "stream", topic, columns, time="at", text=text)


def _compared(
    node: Any, calls: Mapping[int, tuple[str, AggregateCall]], aliases: Mapping[str, Any]
) -> _Compared:
    """The answer that a comparison compares with a number."""
    if type(node) not in _LIMITS:
        raise error_at(node, _CURE)
    kind, left, right = type(node), node.this, node.expression
    if isinstance(left, exp.Literal):
        kind, left, right = _MIRRORED[kind], right, left
    number = constant(right, "the limit of an alert")
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise error_at(right, f"the limit of an alert must be a number, got {number!r}")
    limit, left = _LIMITS[kind], _bare(left, aliases)
    if isinstance(left, exp.Div):
        parts = [_path(_bare(side, aliases), calls) for side in (left.this, left.expression)]
        return _Compared(parts[0], limit, number, parts[1])
    if isinstance(left, exp.Anonymous) and left.name.upper() in BOUNDS and len(left.expressions) == 1:
        side = BOUNDS[left.name.upper()]
        if limit not in _SURELY[side]:
            raise error_at(
                left,
                "for an alert that is certain, write LOWER_BOUND(…) > number, or UPPER_BOUND(…) < number",
            )
        return _Compared(_path(_bare(left.expressions[0], aliases), calls), limit, number, surely=True)
    return _Compared(_path(left, calls), limit, number)


def _bare(node: Any, aliases: Mapping[str, Any]) -> Any:
    """An aggregate without wrappers that only convert it: its FILTER, brackets, a CAST, times 1.0."""
    if isinstance(node, exp.Column) and node.name.lower() in aliases:
        return _bare(aliases[node.name.lower()], aliases)
    if isinstance(node, exp.Mul) and node.expression.is_number and float(node.expression.this) == 1:
        return _bare(node.this, aliases)
    if isinstance(node, exp.Filter | exp.Paren | exp.Cast):
        return _bare(node.this, aliases)
    return node


def _path(node: Any, calls: Mapping[int, tuple[str, AggregateCall]]) -> str:
    """The path of an aggregate's answer, in the form that rules use."""
    if id(node) not in calls:
        raise error_at(node, _CURE)
    name, one = calls[id(node)]
    if one.root:
        raise error_at(node, "an alert takes VARIANCE(column), held against the square of the limit")
    if one.family in RANKED:
        if len(one.ranks) != 1 or one.ranks[0] not in USUAL_QUANTILES:
            ranks = ", ".join(map(str, USUAL_QUANTILES))
            raise error_at(node, f"an alert takes one percentile, one of {ranks}")
        return f"{name}.p{one.ranks[0] * 100:g}"
    return name
