"""What people who run servers want to know."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ...operators.definition.aggregates import count, distinct, quantiles, top_k
from ...operators.definition.aggregates import sum as sum_
from ...operators.definition.stream import Stream
from ...operators.rules.kinds.change import Change
from ...operators.rules.kinds.new_term import NewTerm
from ...operators.rules.kinds.threshold import Ratio, Threshold
from ...operators.rules.rule import Rule
from ..app import App, AppPart, Settings, number
from ..panels import LinesPanel, NumberPanel, RankedPanel, RowsPanel, SpreadPanel
from .brute_force import RefusedLogins
from .columns import LOGINS
from .example import EXAMPLE
from .formats import FORMATS
from .silence import Silence
from .web_requests import LOGIN_PATHS

_DELAY = "1m"
"""The delay for late rows: servers log a request when it ends, with the time when it began."""


def _traffic(rows: Stream) -> Stream:
    return (
        rows.group_by("host")
        .tumbling("5m", delay=_DELAY)
        .agg(
            records=count(),
            failures=sum_("failed"),
            visitors=distinct("address"),
            latency=quantiles("seconds"),
            bytes=sum_("bytes"),
        )
    )


def _days(rows: Stream) -> Stream:
    return rows.tumbling("1d", delay=_DELAY).agg(
        records=count(),
        failures=sum_("failed"),
        visitors=distinct("address"),
        users=distinct("user"),
        addresses=top_k("address"),
        operations=top_k("operation"),
        statuses=top_k("status"),
        agents=top_k("agent"),
        terms=top_k("term"),
        latency=quantiles("seconds"),
        bytes=sum_("bytes"),
    )


def _logins(rows: Stream) -> Stream:
    """Return refused logins by address, connection and time. Other records only advance time."""
    refused, sign = pl.col("refused"), pl.col("sign").fill_null("")
    wanted = refused > 0
    if "accepted" in rows.columns:
        wanted = wanted | (pl.col("accepted") > 0)
    known = wanted & pl.col("address").is_not_null()
    keys: dict[str, pl.Expr] = {n: pl.when(known).then(pl.col(n)) for n in ("address", "connection")}
    keys["at"] = pl.when(known).then(pl.col("at")).otherwise(pl.col("at").dt.truncate("1m"))
    parts = {
        name: pl.when(sign == name).then(refused).otherwise(0) for name in ("announced", "ended", "probe")
    }
    by_address = rows.with_columns(**keys, **parts).group_by(*keys)
    answers = [name for name in ("challenged", "accepted") if name in rows.columns]
    sums = {name: sum_(name) for name in ("refused", *parts, *answers)}
    return by_address.tumbling("1m", delay=_DELAY).agg(**sums)


def _clients(rows: Stream) -> Stream:
    """Return what the refused logins and missing paths of an address are about, within an hour."""
    refused, missing, keys = _troubles(rows)
    unknown = refused & (pl.col("sign") == "announced")
    columns = {
        "of_user": pl.when(refused).then("user"),
        "unknown_user": pl.when(unknown).then("user"),
        "missing_path": pl.when(missing).then("operation"),
    }
    by_address = rows.with_columns(**columns, **keys).group_by("address")
    return by_address.hopping("1h", every="5m", delay=_DELAY).agg(
        users=distinct("of_user"), unknown_users=distinct("unknown_user"), paths=distinct("missing_path")
    )


def _day_of_clients(rows: Stream) -> Stream:
    """Count the connections per day on which an address was refused; without connections, the seconds.

    A 401 for a request without a user name only requests credentials, unless the path itself accepts
    passwords.
    """
    refused, _, keys = _troubles(rows)
    connection = pl.col("connection")
    if "challenged" in rows.columns:
        challenged = pl.col("challenged").fill_null(0) > 0
        refused &= ~challenged | pl.col("operation").str.contains(LOGIN_PATHS).fill_null(False)
        # For a challenge, the path serves as connection.
        connection = pl.when(~challenged).then(connection)
    visit = pl.coalesce(connection, pl.col("at").dt.truncate("1s").cast(pl.String))
    by_address = rows.with_columns(visit=pl.when(refused).then(visit), **keys).group_by("address")
    return by_address.hopping("1d", every="1h", delay=_DELAY).agg(visits=distinct("visit"))


def _accounts(rows: Stream) -> Stream:
    """Count the addresses from which a user's logins were refused, within an hour."""
    refused, _, _ = _troubles(rows)
    refused &= pl.col("user").is_not_null()
    by_user = rows.with_columns(
        by_address=pl.when(refused).then("address"), user=pl.when(refused).then("user")
    ).group_by("user")
    return by_user.hopping("1h", every="5m", delay=_DELAY).agg(addresses=distinct("by_address"))


def _troubles(rows: Stream) -> tuple[pl.Expr, pl.Expr, dict[str, pl.Expr]]:
    """Mark rows as refused logins or missing paths, with their key; other rows only advance time."""
    named = pl.col("address").is_not_null()
    refused, missing = named & (pl.col("refused") > 0), named & (pl.col("missing") > 0)
    return refused, missing, {"address": pl.when(refused | missing).then("address")}


def _terms(rows: Stream) -> Stream:
    known = rows.filter(pl.col("term").is_not_null())
    return known.group_by("term").tumbling("5m", delay=_DELAY).agg(records=count())


def _traffic_rules(settings: Settings) -> Sequence[Rule]:
    ratio, spike = number(settings, "ratio"), number(settings, "spike")
    rules: list[Rule] = [
        Ratio(
            "errors",
            kind="errors",
            value="failures",
            to="records",
            above=ratio,
            clear=ratio / 2,
            least=number(settings, "least"),
        ),
        Change(
            "spike",
            kind="spike",
            value="records",
            against="ewma",
            over=288,
            by="z",
            above=spike,
            clear=spike / 2,
            hold="10m",
            warm=36,
            least=number(settings, "least"),
            absent=0,
        ),
        Silence("silence", kind="silence", longer=settings["silence"]),
    ]
    if settings["slow"]:
        slow = number(settings, "slow")
        rules.append(Threshold("slow", kind="slow", value="latency.p99", above=slow, hold="10m", surely=True))
    return rules


def _login_rules(settings: Settings) -> Sequence[Rule]:
    return [
        RefusedLogins(
            "brute force",
            kind="brute force",
            value="refused",
            per=("address",),
            at_least=number(settings, "logins"),
            over=settings["findtime"],
            absent=0,
            clear=0,
            challenges=settings.get("challenges") == "yes",
        )
    ]


def _limits(settings: Settings, *limits: tuple[str, str, str]) -> Sequence[Rule]:
    """Return rules from names, the settings of their limits, and their values; a rule without a limit is
    off."""
    return [
        Threshold(name, kind=name, value=value, at_least=number(settings, setting), absent=0)
        for name, setting, value in limits
        if settings[setting]
    ]


def _client_rules(settings: Settings) -> Sequence[Rule]:
    return _limits(
        settings,
        ("password spraying", "spray", "users"),
        ("user enumeration", "enumerate", "unknown_users"),
        ("path scanning", "scan", "paths"),
    )


def _slow_rules(settings: Settings) -> Sequence[Rule]:
    return _limits(settings, ("slow brute force", "slow_logins", "visits"))


def _account_rules(settings: Settings) -> Sequence[Rule]:
    return _limits(settings, ("credential stuffing", "stuff", "addresses"))


def _term_rules(settings: Settings) -> Sequence[Rule]:
    cap = int(number(settings, "new", 0))
    return [NewTerm("new term", kind="new term", value="records", learn=settings["learn"], cap=cap)]


APP = App(
    name="logs",
    kinds={"refusedlogins": RefusedLogins, "silence": Silence},
    title="Logs: errors, spikes, silence, refused logins, what is new",
    formats=FORMATS,
    parts=(
        AppPart("traffic", _traffic, _traffic_rules),
        AppPart("days", _days, total="total"),
        AppPart("logins", _logins, _login_rules, at="at", shown=False, keep_late=True),
        AppPart("clients", _clients, _client_rules, shown=False),
        AppPart("client-days", _day_of_clients, _slow_rules, shown=False),
        AppPart("accounts", _accounts, _account_rules, shown=False),
        AppPart("terms", _terms, _term_rules, shown=False),
    ),
    settings={
        "errors": "500",
        "ratio": "0.05",
        "least": "50",
        "spike": "6",
        "silence": "1h",
        "slow": "",
        "logins": "5",
        "findtime": "10m",
        **LOGINS,
        "slow_logins": "30",
        "spray": "10",
        "enumerate": "10",
        "stuff": "20",
        "scan": "20",
        "learn": "1d",
        "new": "5",
        "terms": "",
    },
    panels=(
        LinesPanel("Records in 5 minutes", "traffic", "records", by="host", unit="records"),
        LinesPanel("Share of failures", "traffic", "failures", to="records", by="host"),
        NumberPanel("Records", "traffic", "records", unit="records"),
        NumberPanel("Failed", "traffic", "failures", to="records"),
        NumberPanel("Visitors", "traffic", "visitors", unit="visitors"),
        NumberPanel("Bytes", "traffic", "bytes", unit="bytes"),
        SpreadPanel("Latency", "traffic", "latency", unit="s"),
        RankedPanel("Paths and operations", "days", "operations", unit="records"),
        RankedPanel("Addresses", "days", "addresses", unit="records"),
        RankedPanel("Agents", "days", "agents", unit="records"),
        RankedPanel("Statuses", "days", "statuses", unit="records"),
        RankedPanel("Kinds of records", "days", "terms", unit="records"),
        RankedPanel("Refused logins", "logins", "refused", by="address", unit="logins"),
        RowsPanel(
            "Hosts",
            "traffic",
            {
                "host": "host",
                "records": "records",
                "failures": "failed",
                "visitors": "visitors",
                "latency.p50": "median latency",
                "latency.p99": "99 % within",
                "bytes": "bytes",
            },
            order="-records",
            units={"latency.p50": "s", "latency.p99": "s", "bytes": "bytes"},
        ),
    ),
    example=EXAMPLE,
)
