"""`streamgauge sql`: what it prints, for people and machines, and its exit code."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from confluent_kafka import Producer
from typer.testing import CliRunner

from streamgauge.apps.cli.commands import app
from streamgauge.apps.cli.sql import write_table
from streamgauge.queries.sql.run.statement_result import StatementResult

START = 1_767_225_600_000
RUNNER = CliRunner()

SCRIPT = f"""
CREATE STREAM attempts (card VARCHAR, ts BIGINT)
  WITH (KAFKA_TOPIC='attempts', VALUE_FORMAT='JSON', TIMESTAMP='ts');
CREATE TABLE fraud AS SELECT card, COUNT(*) AS n, APPROX_COUNT_DISTINCT(ts) AS times FROM attempts
  WINDOW TUMBLING (SIZE 5 SECONDS) GROUP BY card HAVING COUNT(*) > 3;
INSERT INTO attempts VALUES ('c1', {START}), ('c1', {START + 1}), ('c1', {START + 2}), ('c1', {START + 3}),
  ('c2', {START});
ASSERT VALUES fraud (card, n) VALUES ('c1', 4);
SELECT card, n FROM fraud EMIT CHANGES;
"""


def ran(*arguments: object) -> tuple[int, list[dict[str, Any]]]:
    done = RUNNER.invoke(app, ["sql", *map(str, arguments)])
    assert isinstance(done.exception, SystemExit | None), done.exception
    return done.exit_code, [json.loads(line) for line in done.stdout.splitlines()]


def test_a_script_is_held_to_what_it_expects_without_a_broker(tmp_path: Path) -> None:
    file = tmp_path / "fraud.sql"
    file.write_text(SCRIPT)
    code, results = ran("--test", file, "--json")
    assert code == 0 and [one["kind"] for one in results] == ["done"] * 4 + ["rows"]
    assert list(results[-1]) == ["statement", "kind", "columns", "rows", "bounds", "error"]
    assert (results[-1]["columns"], results[-1]["rows"]) == (["card", "n"], [["c1", 4]])
    file.write_text(SCRIPT.replace("('c1', 4)", "('c1', 5)"))
    code, results = ran("--test", file, "--json")
    assert code == 1 and results[-1]["error"] == {
        "line": 8,
        "column": 15,
        "message": "row 1 of fraud must be ('c1', 5), got ('c1', 4)",
    }


def test_a_program_is_printed_line_by_line(tmp_path: Path) -> None:
    file = tmp_path / "explained.sql"
    file.write_text(SCRIPT.split("CREATE TABLE")[0] + "EXPLAIN SELECT COUNT(*) AS n FROM attempts")
    lines = RUNNER.invoke(app, ["sql", "--test", str(file)]).stdout.splitlines()
    assert "import streamgauge as sg" in lines and "# Plan:" in lines


@pytest.mark.slow
def test_a_missing_broker_is_reported_within_seconds() -> None:
    done = RUNNER.invoke(app, ["sql", "-e", "SHOW TOPICS", "--bootstrap-servers", "localhost:1"])
    assert done.exit_code == 1
    assert "no broker answered at localhost:1 within 5 s" in done.output and "check" in done.output


def test_rows_for_people_and_as_csv(tmp_path: Path) -> None:
    file = tmp_path / "fraud.sql"
    file.write_text(SCRIPT)
    shown = RUNNER.invoke(app, ["sql", "--test", str(file)]).stdout
    assert "done: CREATE TABLE fraud AS SELECT" in shown and " c1 " in shown
    assert RUNNER.invoke(app, ["sql", "--test", str(file), "--csv"]).stdout == "card,n\nc1,4\n"
    file.write_text(SCRIPT + "SELECT car FROM attempts EMIT CHANGES")
    done = RUNNER.invoke(app, ["sql", "--test", str(file)])
    assert done.exit_code == 1
    assert "no column is called car; did you mean card?\n  SELECT car FROM" in done.stderr
    assert "\n         ^^^\n" in done.stderr


def test_null_and_rounded_estimates_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [("", None, 1.01), ("a", 7, 0.5)]
    bounds = {"median": [[0.9999999999245025, 1.0202020202790427], [0.5, 0.5]]}
    write_table(StatementResult("SELECT …", "rows", ["shop", "n", "median"], rows, bounds))
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["NULL", "1.01", "(1", "to", "1.02)"] in lines and ["a", "7", "0.5"] in lines


def test_a_script_that_is_not_there_is_named(tmp_path: Path) -> None:
    message = "the script nofile.sql can't be read: No such file or directory"
    assert str(RUNNER.invoke(app, ["sql", "nofile.sql"]).exception) == message
    outer = tmp_path / "outer.sql"
    outer.write_text("RUN SCRIPT 'nofile.sql'")
    [result] = ran("--test", outer, "--json")[1]
    assert "nofile.sql can't be read: No such file" in result["error"]["message"]


@pytest.mark.parametrize("suffix", [".arrow", ".parquet", ".csv"])
def test_rows_go_to_a_file(tmp_path: Path, suffix: str) -> None:
    file, output = tmp_path / "fraud.sql", tmp_path / f"rows{suffix}"
    file.write_text(SCRIPT)
    assert ran("--test", file, "--json", "--output", output)[0] == 0
    read = {".arrow": pl.read_ipc, ".parquet": pl.read_parquet, ".csv": pl.read_csv}[suffix]
    assert read(output).rows(named=True) == [{"card": "c1", "n": 4}]
    assert list(tmp_path.glob(".*")) == []
    with pytest.raises(AssertionError, match=r"ends in .arrow, .parquet, .csv, got rows.xml"):
        ran("--test", file, "--output", "rows.xml")


def test_one_source_of_statements_is_named() -> None:
    done = RUNNER.invoke(app, ["sql"])
    assert str(done.exception) == "sql: pass one of FILE, -e TEXT and --test FILE, or start it in a terminal"


@pytest.mark.slow
@pytest.mark.kafka
def test_statements_on_a_broker(kafka: Any) -> None:
    name = uuid.uuid4().hex[:8]
    kafka.create_topic(f"posts-{name}")
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})
    for number in range(200):
        row = {"ts": START + number * 1000, "usr": f"u{number % 20}", "lang": "en" if number % 4 else "fi"}
        producer.produce(f"posts-{name}", json.dumps(row).encode())
    producer.flush()
    text = f"""
    CREATE STREAM posts (ts BIGINT, usr VARCHAR, lang VARCHAR)
      WITH (KAFKA_TOPIC='posts-{name}', VALUE_FORMAT='JSON', TIMESTAMP='ts');
    CREATE TABLE people (usr VARCHAR PRIMARY KEY, town VARCHAR) WITH (KAFKA_TOPIC='people-{name}');
    INSERT INTO people VALUES ('u1', 'Turku'), ('u2', 'Oulu');
    PRINT 'posts-{name}' FROM BEGINNING LIMIT 2;
    SELECT usr, lang FROM posts WHERE lang = 'fi' EMIT CHANGES LIMIT 1;
    SELECT p.usr, town FROM posts p JOIN people u ON p.usr = u.usr EMIT CHANGES;
    SELECT window_start, lang, COUNT(*) AS n, APPROX_COUNT_DISTINCT(usr) AS users FROM posts
      WINDOW TUMBLING (SIZE 100 SECONDS) GROUP BY lang EMIT FINAL;
    SELECT lang, COUNT(*) AS n, MIN(ROWTIME) AS first FROM posts GROUP BY lang ORDER BY lang;
    CREATE STREAM finnish WITH (KAFKA_TOPIC='finnish-{name}') AS SELECT ts, usr FROM posts WHERE lang = 'fi';
    CREATE TABLE counts WITH (KAFKA_TOPIC='counts-{name}') AS
      SELECT usr, COUNT(*) AS n, APPROX_COUNT_DISTINCT(usr) AS users FROM finnish
      WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY usr HAVING COUNT(*) > 1;
    CREATE TABLE seen WITH (KAFKA_TOPIC='seen-{name}') AS SELECT COUNT(*) AS n FROM finnish
      WINDOW TUMBLING (SIZE 1 HOUR);
    CREATE ALERT many AS SELECT COUNT(*) AS n FROM finnish WINDOW TUMBLING (SIZE 1 HOUR) HAVING COUNT(*) > 49
      WITH (TO='many-{name}');
    SELECT usr, n FROM counts EMIT CHANGES;
    ASSERT VALUES seen (n) VALUES (50);
    ASSERT VALUES many (state, value) VALUES ('fired', 50);
    SHOW TOPICS;
    CREATE TABLE stored WITH (GROUP='g-{name}.finnish-{name}.counts');
    SELECT COUNT(*) AS n, APPROX_COUNT_DISTINCT(usr) AS users FROM stored;
    SELECT nothing FROM posts;
    """
    servers = ("--bootstrap-servers", kafka.bootstrap_servers)
    code, results = ran("-e", text, "--json", "--once", "--group", f"g-{name}", *servers)
    assert code == 1 and results[-1]["kind"] == "error"
    printed, first, joined, counted, whole, _, _, _, _, written, _, _, topics, _, pull_query = (
        one["rows"] for one in results[3:-1]
    )
    assert json.loads(printed[1][4])["usr"] == "u1" and len(printed) == 2
    assert first == [["u0", "fi"]]
    assert sorted(map(tuple, joined)) == [("u1", "Turku")] * 10 + [("u2", "Oulu")] * 10
    assert counted == [
        ["2026-01-01T00:00:00", "en", 75, 15],
        ["2026-01-01T00:00:00", "fi", 25, 5],
        ["2026-01-01T00:01:40", "en", 75, 15],
        ["2026-01-01T00:01:40", "fi", 25, 5],
    ]
    assert whole == [["en", 150, "2026-01-01T00:00:01"], ["fi", 50, "2026-01-01T00:00:00"]]
    assert results[6]["bounds"]["users"] == [[15, 15], [5, 5], [15, 15], [5, 5]]
    assert sorted(map(tuple, written)) == [(f"u{n}", 10) for n in (0, 12, 16, 4, 8)]
    assert {f"posts-{name}", f"finnish-{name}", f"counts-{name}"} <= {topic for topic, _ in topics}
    assert pull_query == [[50, 5]] and results[-2]["bounds"]["users"] == [[5, 5]]


@pytest.mark.slow
@pytest.mark.kafka
def test_closed_windows_are_kept_and_asked_with_the_open_ones(kafka: Any, tmp_path: Path) -> None:
    name, folder = uuid.uuid4().hex[:8], tmp_path / "minutes"
    create = f"""CREATE STREAM posts (ts BIGINT, usr VARCHAR)
      WITH (KAFKA_TOPIC='posts-{name}', VALUE_FORMAT='JSON', TIMESTAMP='ts');"""
    counts = f"""CREATE TABLE counts WITH (KAFKA_TOPIC='counts-{name}', SKETCHES='{folder}', KEEP='30d') AS
      SELECT usr, COUNT(*) AS n FROM posts WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY usr;"""
    options = ("--json", "--once", "--bootstrap-servers", kafka.bootstrap_servers)
    for part in range(2):
        rows = ", ".join(
            f"({START + (part * 20 + minute) * 60_000}, 'u{minute % 2}')" for minute in range(20)
        )
        script = f"{create} INSERT INTO posts VALUES {rows}; {counts} SHOW QUERIES;"
        code, results = ran("-e", script, "--group", f"g-{name}", *options)
        assert code == 0, results[-1]
    questions = f"""CREATE TABLE alone WITH (GROUP='g-{name}.posts-{name}.counts');
    CREATE TABLE whole WITH (GROUP='g-{name}.posts-{name}.counts', SKETCHES='{folder}');
    SELECT usr, COUNT(*) AS n FROM whole GROUP BY usr ORDER BY usr;
    SELECT COUNT(*) AS n FROM whole WHERE window_start >= TIMESTAMP '2026-01-01 00:10:00';
    SELECT usr, COUNT(*) AS n FROM alone GROUP BY usr ORDER BY usr;"""
    code, results = ran("-e", questions, *options)
    assert code == 0, results[-1]["error"]
    assert results[2]["rows"] == [["u0", 20], ["u1", 20]]
    assert results[3]["rows"] == [[30]] and "warnings" not in results[3]
    assert results[4]["rows"] != results[2]["rows"]
    (warning,) = results[4]["warnings"]
    assert warning.startswith("windows that end by 2026-01-01T00:") and "are not in the answer" in warning


@pytest.mark.slow
@pytest.mark.kafka
def test_a_changed_statement_is_refused_by_its_name_at_its_place(kafka: Any) -> None:
    name = uuid.uuid4().hex[:8]
    script = f"""CREATE STREAM posts (ts BIGINT, usr VARCHAR)
      WITH (KAFKA_TOPIC='posts-{name}', VALUE_FORMAT='JSON', TIMESTAMP='ts');
    INSERT INTO posts VALUES ({START}, 'u1'), ({START}, 'u1'), ({START}, 'u2');
    CREATE TABLE counts WITH (KAFKA_TOPIC='counts-{name}') AS SELECT usr, COUNT(*) AS n FROM posts
      WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY usr HAVING COUNT(*) > 1;
    CREATE TABLE whole WITH (KAFKA_TOPIC='whole-{name}') AS SELECT COUNT(*) AS n FROM posts
      WINDOW TUMBLING (SIZE 1 HOUR);
    CREATE ALERT many AS SELECT usr FROM posts WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY usr
      HAVING COUNT(*) > 1 WITH (TO='many-{name}');
    SHOW QUERIES;"""
    options = ("--json", "--once", "--group", f"g-{name}")
    servers = ("--bootstrap-servers", kafka.bootstrap_servers)
    assert ran("-e", script, *options, *servers)[0] == 0
    again = script.replace("INSERT INTO posts", "-- INSERT INTO posts")
    assert ran("-e", again, *options, *servers)[0] == 0
    for old, new, message in (
        (
            "GROUP BY usr HAVING COUNT(*) > 1",
            "GROUP BY usr HAVING COUNT(*) > 2",
            'HAVING changed from "COUNT(*) > 1" to',
        ),
        (
            "SELECT usr, COUNT(*) AS n",
            "SELECT usr, COUNT(*) * 2 AS n",
            'SELECT changed from "usr, COUNT(*) AS n" to',
        ),
        ("SIZE 1 HOUR) GROUP BY usr HAVING", "SIZE 2 HOURS) GROUP BY usr HAVING", "the window changed from"),
    ):
        code, results = ran("-e", again.replace(old, new), *options, *servers)
        error = results[-1]["error"]
        assert code == 1 and "'counts'" in error["message"] and message in error["message"]
        assert (error["line"], error["column"]) == (4, 5)
    # An alert's HAVING is the limit of its rule, which may be another from now on.
    assert (
        ran("-e", again.replace("HAVING COUNT(*) > 1 WITH", "HAVING COUNT(*) > 9 WITH"), *options, *servers)[
            0
        ]
        == 0
    )


@pytest.mark.slow
@pytest.mark.kafka
def test_windows_say_why_messages_could_not_be_read(kafka: Any) -> None:
    name = uuid.uuid4().hex[:8]
    kafka.create_topic(f"posts-{name}")
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})
    for number in range(100):
        row = {"ts": START + number * 1000, "n": "many" if number % 10 == 9 else number}
        producer.produce(f"posts-{name}", json.dumps(row).encode())
    producer.flush()
    text = f"""CREATE STREAM posts (ts BIGINT, n INT)
      WITH (KAFKA_TOPIC='posts-{name}', VALUE_FORMAT='JSON', TIMESTAMP='ts');
    SELECT COUNT(*) AS posts FROM posts WINDOW TUMBLING (SIZE 1 HOUR) EMIT CHANGES;
    SELECT n FROM posts;"""
    servers = ("--bootstrap-servers", kafka.bootstrap_servers)
    code, (_, windows, rows) = ran("-e", text, "--json", "--once", *servers)
    assert code == 0 and windows["rows"] == [[90]] and len(rows["rows"]) == 90
    for result in (windows, rows):
        assert result["warnings"] == [
            '10 of 100 messages could not be read, such as: "n" is a string, not INT'
        ]
