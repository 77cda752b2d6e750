"""Errors are shown in one line: of SQL functions, sources, sinks and queries, each without Spark's stack."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F

from streamgauge.operators.definition import aggregates as ask
from streamgauge.sketches.core.errors import RunError
from streamgauge.sketches.core.protocol import SketchError
from streamgauge.spark_udafs.frames.frames import sketch
from streamgauge.spark_udafs.functions.registering import register
from streamgauge.spark_udafs.streaming.query_handle import QueryFailed, Running, failed
from streamgauge.spark_udafs.streaming.run import write
from streamgauge.spark_udafs.worker_errors import last_error, raised_alone

FROM_SINK = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: [FOREACH_BATCH] failed
Traceback (most recent call last):
  File "run.py", line 9, in call_sink
OSError: no space

The above exception was the direct cause of the following exception:

streamgauge.operators.sinks.sink.SinkError: the sink store raised OSError in micro-batch 0: no space
\tat org.apache.spark.X: Y
Caused by: java.io.IOException: z
"""


def test_the_error_of_this_package_is_found_in_spark_s_text() -> None:
    assert last_error(FROM_SINK) == "the sink store raised OSError in micro-batch 0: no space"
    assert last_error("[STREAM_FAILED] Query [id = 1] terminated with exception: out of disk") is None
    source = (
        "PySparkRuntimeError: [PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR] Failed to run: data source x "
        "throw exception: no broker answers SQLSTATE: 38000"
    )
    assert last_error(source) == "no broker answers"
    option = (
        "[PYTHON_DATA_SOURCE_ERROR] Failed to create instance: ValueError: no option 'a'\n SQLSTATE: 38000"
    )
    assert last_error(option) == "ValueError: no option 'a'"


def test_only_errors_of_this_package_lose_their_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = "SPARK_HIDE_TRACEBACK"
    monkeypatch.setenv(hidden, "")
    for error in (ValueError("of the user's function"), KeyError("x")):
        with pytest.raises(type(error)), raised_alone():
            int("1")
            _raise_elsewhere(error)
        assert not os.environ[hidden]
    with pytest.raises(SketchError), raised_alone():
        raise SketchError("not a sketch")
    assert os.environ[hidden] == "1"


def _raise_elsewhere(error: Exception) -> None:
    exec(compile("raise error", "/elsewhere.py", "exec"), {"error": error})


def test_a_failed_query_raises_one_line_with_spark_s_error_as_its_cause() -> None:
    class Failed:
        isActive = False

        def awaitTermination(self, timeout: float) -> bool:
            raise StreamingQueryException(FROM_SINK)

        def exception(self) -> None:
            return None

    with pytest.raises(QueryFailed) as raised:
        Running(Failed(), "checkpoint").awaitTermination()
    assert str(raised.value) == "the sink store raised OSError in micro-batch 0: no space"
    assert isinstance(raised.value, StreamingQueryException) and isinstance(raised.value, RunError)
    assert isinstance(raised.value.__cause__, StreamingQueryException)
    assert str(failed(StreamingQueryException("[STREAM_FAILED] gone\n\tat x"))) == "[STREAM_FAILED] gone"


WRONG_SQL = {
    "answer_distinct(X'00112233')": "not a sketch",
    "answer_distinct(X'')": "HLL",
    "answer_distinct_set(sketch_distinct(id))": "Theta",
    "answer_quantiles(sketch_distinct(id))": "DDSketch",
    "answer_distinct(string(id))": "sketch must be a sketch, a column of type BINARY",
    "merge_distinct(string(id))": "sketch must be a sketch, a column of type BINARY",
    "merge_distinct(X'00aa')": "HLL",
    "sketch_distinct(id, lg_k => 99)": "lg_k must be a whole number from 4 to 21, got 99",
    "sketch_distinct(id, lgk => 12)": "unexpected keyword argument 'lgk'",
    "sketch_distinct()": "missing a required argument: 'column'",
    "answer_distinct(sketch_distinct(id), 1, 2)": "too many positional arguments",
    "answer_quantiles(sketch_quantiles(id), 1.5)": "1.5",
    "answer_kll_quantiles(sketch_kll_quantiles(id))": "write answer_kll_quantiles_double",
    "sketch_distinct(map('a', id))": "map",
}


@pytest.mark.slow
@pytest.mark.spark
def test_errors_of_sql_functions_have_one_line(spark: Any) -> None:
    register(spark)
    for call, reported in WRONG_SQL.items():
        with pytest.raises(Exception) as raised:
            spark.sql(f"SELECT {call} FROM range(3)").collect()
        text = str(raised.value)
        assert len(text.splitlines()) == 1 and reported in text, f"{call}: {text}"


@pytest.mark.spark
def test_errors_of_sources_have_one_line(spark: Any) -> None:
    register(spark)
    address = {"kafka.bootstrap.servers": "127.0.0.1:9", "subscribe": "posts"}
    for more, reported in (
        ({"startingOfsets": "earliest"}, "did you mean startingOffsets?"),
        ({"subscribePattern": "p.*"}, "exactly one of subscribe, subscribePattern and assign"),
        ({"kafka.auto.offset.reset": "latest"}, "use startingOffsets"),
    ):
        with pytest.raises(Exception) as raised:
            spark.read.format("streamgauge-kafka").options(**address, **more).load().collect()
        text = str(raised.value)
        assert len(text.splitlines()) == 1 and reported in text, f"{more}: {text}"


@pytest.mark.slow
@pytest.mark.spark
def test_errors_of_queries_have_one_line(spark: Any, tmp_path: Path) -> None:
    rows = spark.range(5).selectExpr("id", "timestamp_seconds(id) AS at")
    rows.write.parquet(str(tmp_path / "rows"))
    stream = spark.readStream.schema(rows.schema).parquet(str(tmp_path / "rows"))

    def store(table: Any, batch: Any) -> None:
        raise OSError("no space")

    def ended(name: str, checkpoint: str, *sinks: Any) -> str:
        counted = sketch(stream).outputMode("complete").agg(n=F.count("*"), users=ask.distinct(name))
        with pytest.raises(QueryFailed) as raised:
            write(counted, tmp_path / checkpoint, *sinks, available_now=True).awaitTermination(600)
        assert isinstance(raised.value.__cause__, StreamingQueryException)
        assert len(str(raised.value).splitlines()) == 1
        return str(raised.value)

    assert ended("id", "one", store) == "the sink store raised OSError in micro-batch 0: no space"
    assert ended("at", "one", store).startswith("the checkpoint was made by another definition: ")
