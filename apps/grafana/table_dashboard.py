"""A dashboard of the answers of a query server's tables, by Grafana's Infinity data source.

Source: documentation of `yesoreyeram-infinity-datasource`: queries of type JSON by URL with the backend
parser, whose selectors are paths with dots.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from ...operators.windows.durations import microseconds
from .panels import GrafanaPanel, grafana_dashboard

TYPE = "yesoreyeram-infinity-datasource"
_SPAN = {"from": "${__from:date:iso}", "to": "${__to:date:iso}"}
_WINDOWS = 120
"""The number of windows of a table in the dashboard's initial time range."""
_RANKS = (0.5, 0.9, 0.99)
_ITEMS = 10
_GROUPS = 20


def table_dashboard(url: str, tables: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a dashboard of the answers of a server's tables at `url`; `tables` are as in ``/tables``.

    Questions that need an item (frequency, membership) are left out. Raises `ValueError` for a table that
    isn't ready, whose columns aren't known yet.
    """
    rows: dict[str, Sequence[GrafanaPanel]] = {}
    for table in tables:
        if "columns" not in table:
            waits = table.get("waiting", "it is not ready")
            raise ValueError(f"the table {table['table']!r} can't be queried yet: {waits}")
        rows[table["table"]] = list(_panels(url.rstrip("/"), table))
    if not rows:
        raise ValueError(f"{url} serves no table")
    return grafana_dashboard("streamgauge: answers", "streamgauge-answers", TYPE, rows, span=_span(tables))


def _panels(url: str, table: Mapping[str, Any]) -> Iterator[GrafanaPanel]:
    base = f"{url}/tables/{quote(table['table'], safe='')}"
    windowed = table["window"] is not None
    yield GrafanaPanel(
        "stat",
        "Messages of the table topic not read yet",
        "0 if the server is up to date.",
        [_target(base, {}, "", {"lag": "number"})],
        width=6,
        height=4,
    )
    yield GrafanaPanel(
        "stat",
        "Windows",
        "Windows stored by the server.",
        [_target(base, {}, "", {"windows": "number"})],
        width=6,
        height=4,
    )
    yield GrafanaPanel(
        "table",
        "Watermark",
        "Windows up to this time are final.",
        [_target(base, {}, "", {"watermark": "timestamp", "to": "timestamp"})],
        width=12,
        height=4,
    )
    exact = [column["name"] for column in table["columns"] if column["questions"] == ["rows"]]
    counts = [
        column["name"]
        for column in table["columns"]
        if column["name"] in exact and column["aggregate"] in ("count", "sum", "mean")
    ]
    if counts and windowed:
        yield _series(
            "Exact figures of all groups",
            "For each window.",
            [
                _target(
                    f"{base}/rows?{_repeated('columns', counts)}",
                    {"by": "none", "every": "window"},
                    "rows",
                    _times(dict.fromkeys(map(_path, counts), "number")),
                )
            ],
        )
    keys = {_path(key["name"]): "string" for key in table["keys"]}
    if counts and keys:
        params = {"every": "span", "order": f"-{counts[0]}", "limit": _GROUPS}
        columns = {**keys, **dict.fromkeys(map(_path, counts), "number")}
        yield GrafanaPanel(
            "table",
            f"Groups with the largest {counts[0]}",
            "Over the whole span.",
            [_target(f"{base}/rows?{_repeated('columns', counts)}", params, "rows", columns)],
        )
    for column in table["columns"]:
        yield from _answers(base, column, windowed)


def _answers(base: str, column: Mapping[str, Any], windowed: bool) -> Iterator[GrafanaPanel]:
    """Yield the panels of a column's answers."""
    name, questions = column["name"], column["questions"]
    over = {"column": name, "by": "none", "every": "window"}
    if "distinct" in questions and windowed:
        columns = _times({"estimate": "number", "lower": "number", "upper": "number"})
        yield _series(
            f"{name}: distinct values",
            "Each window's estimate, between its bounds.",
            [_target(f"{base}/distinct", over, "rows", columns)],
            dashed=("lower", "upper"),
        )
    if "quantiles" in questions and windowed:
        yield _series(
            f"{name}: quantiles",
            "For each window.",
            [
                _target(
                    f"{base}/quantiles",
                    {**over, "q": q},
                    "rows",
                    _times({f"value as p{q * 100:g}": "number"}),
                )
                for q in _RANKS
            ],
        )
    if "top-k" in questions:
        columns = {"rank": "number", "item": "string"} | dict.fromkeys(
            ("estimate", "lower", "upper"), "number"
        )
        params = {"column": name, "by": "none", "every": "span", "k": _ITEMS}
        yield GrafanaPanel(
            "table",
            f"{name}: the most frequent",
            "Over the whole span; each count lies between its bounds.",
            [_target(f"{base}/top-k", params, "rows", columns)],
        )


def _times(columns: Mapping[str, str]) -> dict[str, str]:
    return {"window_end": "timestamp", **columns}


def _series(
    title: str, text: str, targets: Sequence[Mapping[str, Any]], dashed: Sequence[str] = ()
) -> GrafanaPanel:
    style = {"id": "custom.lineStyle", "value": {"fill": "dash", "dash": [6, 6]}}
    overrides = [{"matcher": {"id": "byName", "options": name}, "properties": [style]} for name in dashed]
    return GrafanaPanel("timeseries", title, text, targets, overrides=overrides)


def _target(url: str, params: Mapping[str, Any], root: str, columns: Mapping[str, str]) -> dict[str, Any]:
    """Return an Infinity query; a column is named by its selector, or as ``SELECTOR as NAME``."""
    given = {**params, **_SPAN} if params else {}
    return {
        "type": "json",
        "source": "url",
        "parser": "backend",
        "format": "table",
        "url": url,
        "url_options": {
            "method": "GET",
            "data": "",
            "params": [{"key": name, "value": str(value)} for name, value in given.items()],
        },
        "root_selector": root,
        "columns": [_column(name, kind) for name, kind in columns.items()],
        "filters": [],
    }


def _column(name: str, kind: str) -> dict[str, str]:
    selector, _, shown = name.partition(" as ")
    return {"selector": selector, "text": shown or selector, "type": kind}


def _path(name: str) -> str:
    """Return a member's name as a selector."""
    return name.replace("\\", "\\\\").replace(".", "\\.")


def _repeated(name: str, values: Sequence[str]) -> str:
    """Write a repeated parameter, because Infinity's own list has each name only once."""
    return "&".join(f"{name}={quote(value, safe='')}" for value in values)


def _span(tables: Sequence[Mapping[str, Any]]) -> str:
    """Return the start of the initial time range, early enough for the longest windows."""
    sizes = [microseconds(table["window"]["size"]) for table in tables if "size" in (table["window"] or {})]
    seconds = max([*sizes, 0]) * _WINDOWS // 1_000_000
    return f"now-{max(seconds, 3600)}s"
