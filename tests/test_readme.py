"""What the README and the pages behind it show works as it stands, against a real broker and a real Spark."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamgauge import query

from .operators.formats.schema_registry import SmallRegistry
from .waiting import until

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", *(f"docs/{name}.md" for name in ("streams", "spark_streams", "command_line")))
TEXT = "\n".join((ROOT / page).read_text() for page in PAGES)
BLOCKS = re.findall(r"^```python\n(.*?)^```", TEXT, re.M | re.S)


def block(word: str) -> str:
    (result,) = [text for text in BLOCKS if word in text]
    return result


def fill(kafka: Any, topic: str, rows: list[dict[str, Any]]) -> None:
    from confluent_kafka import Producer

    kafka.create_topic(topic, 2)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})
    for row in rows:
        producer.produce(topic, json.dumps(row))
    producer.flush()


def is_shown(printed: str, shown: str) -> bool:
    """Whether the output is what is shown: `…` is any text, at the end of the block all further lines."""
    pattern = re.escape(shown.strip("\n")).replace("…", ".*")
    flags = re.DOTALL if shown.endswith("\n…\n") else 0
    text = "\n".join(line.rstrip() for line in printed.splitlines()).strip("\n")
    return re.fullmatch(pattern, text, flags) is not None


README = (ROOT / "README.md").read_text()
PROGRAM = Path(sys.executable).with_name("streamgauge")
FENCED = re.compile(r"^```(\w+)\n(.*?)^```", re.M | re.S)
LIVE = ("streamgauge kafka start", "streamgauge run iot", "streamgauge serve")
"""Commands that continue until they are stopped; other tests run them."""


def section(begin: str, end: str) -> str:
    return README[README.index(f"## {begin}\n") : README.index(f"## {end}\n")]


def run_blocks(text: str, folder: Path, adapted: Callable[[str], str] = lambda code: code) -> list[str]:
    """Run all blocks in order; each output that is shown is compared. Return the outputs."""
    names: dict[str, Any] = {}
    printed, outputs = "", []
    for language, content in FENCED.findall(text):
        if language == "text":
            assert is_shown(printed, content), printed
            outputs.append(printed)
        elif language == "sql":
            (folder / "posts.sql").write_text(adapted(content))
        elif language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(adapted(content), names)
            printed = out.getvalue()
        else:
            lines = [line for line in content.splitlines() if not line.startswith(LIVE)]
            printed = "".join(run_command(adapted(line), folder) for line in lines)
    return outputs


def run_command(line: str, folder: Path) -> str:
    words = shlex.split(line, comments=True)
    assert words[0] == "streamgauge"
    done = subprocess.run(
        [PROGRAM, *words[1:]],
        cwd=folder,
        env={**os.environ, "COLUMNS": "110"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_first_blocks_print_what_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(run_blocks(section("Start with a file", "How fast, compared with what"), tmp_path)) == 3


@pytest.mark.kafka
@pytest.mark.spark
def test_the_blocks_on_kafka_and_spark_print_what_is_shown(
    kafka: Any, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = f"shown-{uuid.uuid4().hex[:8]}-"

    def adapted(code: str) -> str:
        code = code.replace("localhost:9092", kafka.bootstrap_servers)
        code = code.replace("checkpoint/trades", f"{tmp_path}/checkpoint/trades")
        code = re.sub(r"(NewTopic|produce|from_kafka|KAFKA_TOPIC)([(=])(['\"])", rf"\1\2\3{prefix}", code)
        if code.startswith("streamgauge sql"):
            code += f" --bootstrap-servers {kafka.bootstrap_servers}"
        return code

    monkeypatch.chdir(tmp_path)
    assert len(run_blocks(section("Straight off Kafka", "Extras"), tmp_path, adapted)) == 4


def test_orders_that_count_once_beside_their_users() -> None:
    from streamgauge import StreamTester

    names: dict[str, Any] = {}
    exec(block("orders.deduplicate("), names)
    tester = StreamTester(names["by_country"])
    tester.feed_lookup("users", {"ann": {"country": "FI"}})
    rows = [(1, "ann"), (2, "bob"), (1, "ann"), (3, "ann")]
    tester.feed([{"id": n, "user": user, "at": "2026-01-01T00:00:01"} for n, user in rows])
    results = tester.finish().windows()
    assert dict(results.select("country", "orders").rows()) == {"FI": 2, None: 1}
    assert tester.account.filtered == 1


def test_ads_beside_their_clicks() -> None:
    from streamgauge import StreamTester

    names: dict[str, Any] = {}
    exec(block("ads.join(clicks"), names)
    tester, start = StreamTester(names["clicked"]), 1_767_225_600
    tester.feed([{"ad": str(n), "page": "home", "at": start} for n in range(2)], topic="ads")
    tester.feed([{"ad": "1", "at": start + 42}], topic="clicks")
    tester.advance(3_620)
    tester.feed([{"ad": "2", "at": start + 3_620}], topic="clicks")  # a click of the first hour is late now
    (results,) = tester.finish().windows().to_dicts()
    assert (results["page"], results["shown"], results["clicked"], results["seconds"]["n"]) == (
        "home",
        2,
        1,
        1,
    )


def test_clicks_and_sales_of_three_topics() -> None:
    from streamgauge import StreamTester

    names: dict[str, Any] = {}
    exec(block("clicks.select("), names)
    tester = StreamTester(names["activity"])
    tester.feed([{"user": "ann", "at": "2026-01-01T00:00:01"}] * 2, topic="clicks")
    for topic, total in (("orders", 100.0), ("refunds", 99.0), ("orders", None)):
        tester.feed([{"buyer": "bob", "ms": 1_767_225_600_000, "total": total}], topic=topic)
    results = tester.finish().windows().select("kind", "rows")
    assert dict(results.rows()) == {"click": 2, "large sale": 1, "sale": 2}


def test_good_and_bad_orders_that_are_sent_on() -> None:
    from streamgauge import StreamTester

    names: dict[str, Any] = {}
    exec(block(".rows_to_kafka("), names)
    rows = [{"user": "ann", "amount": 9.5}, {"user": "bob", "amount": None}]
    sent = {}
    for name in ("good", "bad"):
        tester = StreamTester(names[name])
        tester.feed(rows)
        (sent[name],) = tester.sent()
    assert (sent["good"].key, len(sent["good"].value)) == (b"ann", 4 + 8)
    assert json.loads(sent["bad"].value) == {"user": "bob", "amount": None, "why": "no amount"}


@pytest.mark.kafka
def test_streams_that_share_one_reading(kafka: Any) -> None:
    at = "2026-01-01T00:00:01Z"
    pages = [("ann", "/shop/a"), ("bob", "/shop/a"), ("ann", "/news"), ("ann", "/shop/b")]
    fill(kafka, "visits", [{"user": user, "page": page, "at": at} for user, page in pages])
    names: dict[str, Any] = {}
    exec(block("run_together(").replace("localhost:9092", kafka.bootstrap_servers), names)
    result = names["results"]
    assert dict(result["shop"].windows().select("page", "visits").rows()) == {"/shop/a": 2, "/shop/b": 1}
    assert result["others"].windows()["pages"][0][0]["item"] == "/news"
    assert result["users"].account.counted == 4 and result["shop"].account.filtered == 1


@pytest.mark.kafka
def test_the_lines_for_kafka_users(kafka: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def here(text: str) -> str:
        text = text.replace("localhost:9092", kafka.bootstrap_servers)
        return text.replace('"posts"', '"readme-posts"').replace('"trades"', '"readme-more"')

    exec(here(block("create_topics")), {})
    names: dict[str, Any] = {}
    exec(here(block('from_kafka("posts", value=post')), names)
    windows = names["run"].windows().to_dicts()
    assert [window["posts"] for window in windows] == [400, 400, 200]

    live = block("posts.start(").replace("workers=2", "workers=1").replace("by-minute", "readme-live")
    before, after = live.split("print(run.table().answers())")
    exec(before, names)
    run = names["run"]
    until(lambda: run.summary().account.counted == 1_000 == query(run.table())["posts"].sum())
    exec(f"answers = run.table().answers()\nprint(run.table().answers()){after}", names)
    assert names["answers"]["posts"].sum() == 1_000
    assert "Summary(1,000 messages read" in capsys.readouterr().out
    run.wait()
    until(lambda: run.summary().lag == 0)  # unknown as long as no broker answers


def test_the_lines_for_trying_a_stream() -> None:
    names: dict[str, Any] = {}
    # All of the stream, but for its run.
    exec(block('from_kafka("posts", value=post').split("run = ")[0], names)
    exec(block("StreamTester(posts)"), names)


def test_the_lines_for_other_formats() -> None:
    registry = SmallRegistry()
    actor = {"type": "record", "name": "Actor", "fields": [{"name": "id", "type": "long"}]}
    at = {"type": "long", "logicalType": "timestamp-millis"}
    fields = [("user", "string"), ("actor", ["null", actor]), ("at", at)]
    reported = [{"name": name, "type": kind} for name, kind in fields]
    registry.add("orders-value", {"type": "record", "name": "Order", "fields": reported})
    names: dict[str, Any] = {}
    with registry.served():
        exec(block('subject="orders-value"').replace("http://localhost:8081", registry.url), names)
    assert list(names["stream"].columns) == ["user", "actor.id", "at"]


@pytest.mark.kafka
@pytest.mark.spark
def test_the_lines_for_spark_users(kafka: Any, spark: Any, tmp_path: Path, monkeypatch: Any) -> None:
    import streamgauge

    monkeypatch.chdir(tmp_path)
    rows = [
        {"symbol": "A", "user": f"u{i % 9}", "price": i / 10, "at": f"2026-06-01T12:00:{i % 60:02}Z"}
        for i in range(300)
    ]
    fill(kafka, "readme-trades", rows)
    text = block('from_kafka("trades"').replace("localhost:9092", kafka.bootstrap_servers)
    text = text.replace('from_kafka("trades"', 'from_kafka("readme-trades"')
    text = text.replace("checkpoint/trades", f"{tmp_path}/checkpoint")
    text = text.replace("sg.spark.session())", "sg.spark.session(), close_at_end=True)")
    exec(text, {})
    table = streamgauge.merge([_stored(tmp_path / "trades")])
    (window,) = streamgauge.query(table).to_dicts()
    assert window["symbol"] == "A" and window["trades"] == 300
    assert round(window["users"]["estimate"]) == 9

    dataframe = block("register(spark)").replace("localhost:9092", kafka.bootstrap_servers)
    names: dict[str, Any] = {}
    exec(dataframe.replace('"subscribe", "trades"', '"subscribe", "readme-trades"'), names)
    (answer,) = streamgauge.query(streamgauge.spark.as_table(names["by_minute"])).to_dicts()
    assert answer["symbol"] == "A" and round(answer["users"]["estimate"]) == 9
    assert answer["prices"]["quantiles"] == window["prices"]["quantiles"]


@pytest.mark.kafka
@pytest.mark.spark
def test_the_lines_for_several_streams_on_spark(
    kafka: Any, spark: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    import streamgauge

    monkeypatch.chdir(tmp_path)
    ride = {"user": "ann", "km": 2.5, "at": "2026-06-01T12:00:01Z"}
    fill(kafka, "rides", [{**ride, "city": city} for city in ("Oslo", "Lund", "Oslo")])
    names: dict[str, Any] = {}
    exec(block("write_together(").replace("localhost:9092", kafka.bootstrap_servers), names)
    assert {n: one.counted for n, one in streamgauge.spark.accounts_of(names["query"]).items()} == {
        "cities": 3,
        "users": 3,
    }
    answers = streamgauge.query(_stored(tmp_path / "cities"))
    assert dict(answers.select("city", "rides").rows()) == {"Oslo": 2, "Lund": 1}
    (session,) = streamgauge.query(_stored(tmp_path / "users")).to_dicts()
    assert round(session["users"]["estimate"]) == 1


def _stored(folder: Path) -> Any:
    from streamgauge.operators.table.schema import read_parquet

    (file,) = folder.rglob("*.parquet")
    return read_parquet(file)


def test_the_lines_for_sketches(tmp_path: Path) -> None:
    assert len(run_blocks(section("Sketches by themselves", "How it compares"), tmp_path)) == 1


def test_the_lines_about_windows() -> None:
    names: dict[str, Any] = {}
    exec(block("by_user.session"), names)
    assert names["table"].column("user").to_pylist() == ["ann"]
    for stream, windows in (("rolling", 60), ("latest", 1), ("today", 1_440)):
        tester = names["sg"].StreamTester(names[stream])
        tester.feed([{"user": "ann", "page": "a", "at": 1_767_225_600}])
        assert tester.finish().windows()["clicks"].to_list() == [1] * windows


def test_the_recording_is_drawn_from_the_readme() -> None:
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("terminal", ROOT / "docs" / "_site" / "terminal.py")
    assert spec is not None and spec.loader is not None
    terminal: Any = module_from_spec(spec)
    spec.loader.exec_module(terminal)
    drawn = terminal.drawn(terminal.first_commands())
    assert terminal.PICTURE.read_text() == drawn, "run: python docs/_site/terminal.py"
    assert len(drawn) < 20_000 and drawn.count("$ streamgauge ") >= 3
