"""Every query of the dashboards is answered: by a live run's metrics, and by a live query server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import polars as pl
import pytest
from confluent_kafka import Producer
from prometheus_client.parser import text_string_to_metric_families as parsed

from streamgauge import Client, Stream, StreamTester, count
from streamgauge import json as json_decoder
from streamgauge.apps.app import Feed
from streamgauge.apps.grafana.panels import WIDTH
from streamgauge.apps.grafana.table_dashboard import table_dashboard
from streamgauge.apps.jobs.job import Job
from streamgauge.apps.registry import APPS, app_of
from streamgauge.queries.server.http.service import Service
from streamgauge.queries.views.file_table import FileTable
from streamgauge.rules import Alerting, AlertsToWebhook, Threshold

from ...queries.server.http.served import TOKEN, fed, serving
from ...waiting import until
from ..command import Ran

FROM, TO = "2026-01-01T00:00:00.000Z", "2026-01-01T00:06:00.000Z"


def targets(dashboard: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target


def assert_laid_out(dashboard: dict[str, Any]) -> None:
    """Numbers are each panel's own, places lie in the grid, and none lies on another."""
    numbers = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(numbers)) == len(numbers)
    cells: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= WIDTH
        own = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not own & cells
        cells |= own
    names = {variable["name"] for variable in dashboard["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(dashboard["panels"])))
    assert {name for name in used if not name.startswith("__")} <= names


@pytest.mark.kafka
def test_each_metric_of_the_dashboard_is_one_of_a_live_run_s(kafka, ran: Ran) -> None:
    dashboard = json.loads(ran("env", "dashboard"))
    assert_laid_out(dashboard)
    topic = f"grafana-{uuid4().hex[:8]}"
    kafka.create_topic(topic, 1)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})
    for number in range(5):
        producer.produce(topic, b'{"n": %d}' % number)
    assert producer.flush(120) == 0
    posts = Stream.from_kafka(
        topic,
        value=json_decoder({"n": pl.Int64}),
        bootstrap_servers=kafka.bootstrap_servers,
    )
    outlet = AlertsToWebhook("http://127.0.0.1:9/nobody")
    alerting = Alerting([Threshold("many", value="n", above=1_000)], to=[outlet])
    run = posts.tumbling("1m").agg(n=count()).start(group_id=topic, metrics=0, sinks=[alerting])
    try:
        address = f"http://{run.metrics_address}/metrics"

        def samples() -> dict[str, list[dict[str, str]]]:
            text = httpx.get(address, trust_env=False, timeout=120).text
            by_name: dict[str, list[dict[str, str]]] = {}
            for family in parsed(text):
                by_name.setdefault(family.name, [])
                for sample in family.samples:
                    by_name.setdefault(sample.name, []).append(dict(sample.labels))
            return by_name

        # Of an event time that partitions have there are metrics once they have one.
        until(lambda: samples().get("streamgauge_partition_watermark_timestamp_seconds"))
        scraped = samples()
    finally:
        run.stop()
        run.wait(300)
    (variable,) = (one for one in dashboard["templating"]["list"] if one["name"] == "group")
    expressions = [target["expr"] for _, target in targets(dashboard)]
    assert len(expressions) > 20
    for expression in [*expressions, variable["definition"]]:
        names = re.findall(r"streamgauge_\w+", expression)
        assert len(names) == 1 and names[0] in scraped, expression
        labels = [one for labels in re.findall(r"by \(([^)]*)\)", expression) for one in labels.split(", ")]
        for sample in scraped[names[0]]:
            assert set(labels) <= sample.keys(), expression
    shown = set(re.findall(r"streamgauge_\w+", " ".join(expressions)))
    # Of gauges it leaves out what another panel says already.
    said = {"streamgauge_since_progress_seconds", "streamgauge_watermark_timestamp_seconds"}
    gauges = {name for name in scraped if not re.search("_(total|bucket|count|sum|created)$", name)}
    families = {name for name in gauges - said if name.startswith("streamgauge_")}
    assert {name for name in families if not any(one.startswith(name) for one in shown)} == set()


def selected(row: Any, selector: str) -> Any:
    """What Infinity's backend parser takes by a selector: a path whose steps dots divide."""
    for step in re.split(r"(?<!\\)\.", selector):
        row = row[re.sub(r"\\(.)", r"\1", step)]
    return row


def answered(target: dict[str, Any], token: str, edges: tuple[str, str] = (FROM, TO)) -> list[dict[str, Any]]:
    """The rows of a query as Grafana would have them, in columns."""
    span = dict(zip(("${__from:date:iso}", "${__to:date:iso}"), edges))
    options = target["url_options"]
    params = [(one["key"], span.get(one["value"], one["value"])) for one in options["params"]]
    url = httpx.URL(target["url"])
    url = url.copy_with(params=[*url.params.multi_items(), *params])
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    answer = httpx.request(options["method"], url, headers=headers, trust_env=False, timeout=120)
    assert answer.status_code == 200, answer.text
    root = answer.json()
    root_rows = root[target["root_selector"]] if target["root_selector"] else [root]
    return [
        {column["text"]: (column["type"], selected(row, column["selector"])) for column in target["columns"]}
        for row in root_rows
    ]


def test_each_query_gives_rows_from_a_live_server(ran: Ran, tmp_path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    with serving(Service({"posts": fed().table}), token=TOKEN) as server:
        dashboard = json.loads(ran("env", "dashboard", server.url, "--token-file", token))
        only = json.loads(ran("env", "dashboard", server.url, "posts", "--token-file", token))
        said = ran("env", "dashboard", server.url, "x", "--token-file", token, code=1)
        assert "has no table 'x'; it has posts" in said
        assert_laid_out(dashboard)
        assert TOKEN not in json.dumps(dashboard)
        titles = {title for title, _ in targets(dashboard)}
        assert {"users: distinct values", "prices: quantiles", "tags: the most frequent"} <= titles
        assert only == dashboard and len(list(targets(dashboard))) > 10
        for title, target in targets(dashboard):
            rows = answered(target, TOKEN)
            assert rows, title
            for name in rows[0]:
                values = [row[name] for row in rows]
                assert any(value is not None for _, value in values), (title, name)
                for kind, value in values:
                    if kind == "timestamp":
                        assert datetime.fromisoformat(value)
                    elif kind == "number":
                        assert value is None or isinstance(value, int | float), (title, name)


def test_the_span_holds_enough_of_the_longest_windows() -> None:
    table = {"table": "days", "window": {"kind": "tumbling", "size": "1d"}, "keys": [], "columns": []}
    assert table_dashboard("http://h", [table])["time"]["from"] == f"now-{120 * 86_400}s"
    short = {**table, "window": {"kind": "session", "gap": "1m"}}
    assert table_dashboard("http://h", [short])["time"]["from"] == "now-3600s"


def test_names_with_dots_are_selected_as_they_are() -> None:
    columns = [{"name": "a.b", "aggregate": "count", "questions": ["rows"]}]
    table = {"table": "t", "window": {"size": "1m"}, "keys": [{"name": "k.l"}], "columns": columns}
    dashboard = table_dashboard("http://h/", [table])
    selectors = [one["selector"] for _, target in targets(dashboard) for one in target["columns"]]
    assert {r"a\.b", r"k\.l"} <= set(selectors)
    assert [selected({"a.b": 1}, one) for one in selectors if one == r"a\.b"] == [1, 1]


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ([], "serves no table"),
        ([{"table": "t", "ready": False, "waiting": "it reads"}], "'t' can't be queried yet: it reads"),
    ],
)
def test_a_server_without_answers_is_named(tables, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        table_dashboard("http://h", tables)


@pytest.fixture(scope="module")
def demo_tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The tables of the demo's apps, of the first messages of each."""
    folder, tables = tmp_path_factory.mktemp("demo"), {}
    now_ms = int(datetime(2026, 6, 1, 12, tzinfo=UTC).timestamp() * 1000)
    for app in map(app_of, APPS):
        if app.example is None:
            continue
        job = Job.of(app, app.example.format, app.example.settings)
        messages = list(islice(app.example.messages(0, now_ms), 3_000))
        for name, stream in job.streams(Feed(app.name, "localhost:9092")).items():
            tester = StreamTester(stream, start=datetime(2026, 6, 1, 12, tzinfo=UTC))
            sent = [datetime.fromtimestamp((message.sent_ms or now_ms) / 1000, UTC) for message in messages]
            tester.feed_messages([message.value for message in messages], timestamps=sent)
            tester.finish()
            table = tester.tables()
            if table.to_arrow().num_rows:
                tables[f"{app.name}-{name}"] = folder / f"{app.name}-{name}.parquet"
                table.write(tables[f"{app.name}-{name}"])
    return tables


@pytest.mark.slow
def test_each_query_gives_rows_from_the_demo_s_tables(demo_tables: dict[str, Path]) -> None:
    assert len({name.partition("-")[0] for name in demo_tables}) == 5
    tables = {name: FileTable(name, path, look=None) for name, path in demo_tables.items()}
    with serving(Service(tables)) as server:
        with Client(server.url) as client:
            described = client.tables()
        dashboard = table_dashboard(server.url, described)
        assert_laid_out(dashboard)
        spans = {one["table"]: (one["from"], one["to"]) for one in described}
        empty = [
            (title, target["url"])
            for title, target in targets(dashboard)
            if not answered(target, "", spans[target["url"].split("/")[4]])
        ]
        # The demo's posts have no emoji, and all of its trades are valued.
        assert {url.split("/")[4] for _, url in empty} <= {"trending-top", "stocks-unvalued"} and len(
            empty
        ) <= 2
        assert len(list(targets(dashboard))) > 50
