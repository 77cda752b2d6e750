"""A password is in nothing that Spark shows or keeps: plans, pages, events, progress, errors, checkpoints."""

from __future__ import annotations

import base64
import io
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import polars as pl
import pytest

from streamgauge.operators.definition import aggregates as ask
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.avro.decoder import avro
from streamgauge.operators.formats.json.decoder import json
from streamgauge.spark_udafs.kafka.source import bound
from streamgauge.spark_udafs.streaming.run import on_spark, write
from streamgauge.spark_udafs.streaming.sinks import SketchesToKafka

pytestmark = [pytest.mark.kafka, pytest.mark.spark]
MARK = "tr0ut-in-the-gauge"
SECRETS = {"sasl.password": MARK, "ssl.key.password": MARK, "sasl.oauthbearer.client.secret": MARK}


def forms(text: bytes) -> Iterator[bytes]:
    """A text, and all that is packed in it: what base64 hides, pickles and compressed ones included."""
    yield text
    for letters in (b"+/", b"-_"):
        for result in re.findall(rb"[A-Za-z0-9" + re.escape(letters) + rb"]{24,}", text):
            for cut in range(4):
                part = result[cut:]
                raw = base64.b64decode(part[: len(part) // 4 * 4], letters)
                yield raw
                with suppress(zlib.error):
                    yield zlib.decompressobj().decompress(raw)


def shown(text: str | bytes) -> bool:
    """Whether the mark is in a text, in whatever form."""
    result = text if isinstance(text, bytes) else text.encode()
    marks = (MARK.encode(), MARK.encode("utf-16-le"))
    return any(mark in form for form in forms(result) for mark in marks)


def test_the_search_finds_what_is_packed() -> None:
    import pickle

    stream = Stream.from_kafka("t", value=json({}), config=SECRETS)
    for text in (
        MARK,
        base64.b64encode(pickle.dumps(stream)),
        base64.b64encode(zlib.compress(MARK.encode())),
    ):
        assert shown(text)
    assert not shown(repr(stream))


@pytest.mark.slow
def test_no_password_in_anything_that_spark_shows_or_keeps(
    spark: Any, kafka: Any, topic: Callable[..., str], send: Callable[..., None], tmp_path: Path
) -> None:
    name = topic()
    send(name, [b'{"at":"2026-01-01T00:00:00Z","user":"u"}', b"oops"])
    rows = Stream.from_kafka(
        name,
        value=json({"at": pl.String, "user": pl.String}),
        key=avro("string", registry={"url": "http://registry:8081", "basic.auth.user.info": f"me:{MARK}"}),
        time="at",
        bootstrap_servers=kafka.bootstrap_servers,
        config=SECRETS,
    )
    stream = rows.tumbling("1m").agg(users=ask.distinct("user"))
    result: dict[str, str | bytes] = {"repr": repr(stream), "source": repr(bound(stream, SECRETS)({}))}
    events = Events(spark, tmp_path / "events")
    batch, table = on_spark(stream, spark, streaming=False), on_spark(stream, spark, close_at_end=True)
    assert batch.count() == 1
    sink = SketchesToKafka(name, kafka.bootstrap_servers, SECRETS)
    result["sink"] = repr(vars(sink))
    query = write(table, tmp_path / "checkpoint", available_now=True)
    assert query.awaitTermination(600)
    for number, frame in enumerate((batch, table, query)):
        for mode in ("extended", "formatted") if frame is not query else (True,):
            with redirect_stdout(io.StringIO()) as printed:
                frame.explain(mode)
            result[f"plan {number} {mode}"] = printed.getvalue()
    result["progress"] = "".join(progress.json for progress in query.recentProgress)
    failing = write(
        on_spark(stream, spark, options={"subscribe": "nowhere"}, close_at_end=True), tmp_path / "failing"
    )
    with pytest.raises(Exception, match="'nowhere' doesn't exist") as failed:
        failing.awaitTermination(60)
    result["exception"] = f"{failed.value!s} {failed.value!r} {failing.exception()}"
    page, api = spark.sparkContext.uiWebUrl, f"/api/v1/applications/{spark.sparkContext.applicationId}"
    for path in ("/StreamingQuery/", "/environment/", f"{api}/sql?planDescription=true&length=9999"):
        with urlopen(page + path, timeout=120) as answer:
            result[path] = answer.read()
    events.close()
    kept = [path for path in tmp_path.rglob("*") if path.is_file() and path.stat().st_size]
    assert {path.relative_to(tmp_path).parts[0] for path in kept} == {"checkpoint", "failing", "events"}
    result |= {str(path): path.read_bytes() for path in kept}
    assert all(result.values())
    assert [where for where, text in result.items() if shown(text)] == []
    # What is to be seen there is there: the search looked at plans.
    assert "streamgauge-kafka-" in str(result["plan 1 extended"])
    assert any(b"SparkListenerSQLExecutionStart" in path.read_bytes() for path in kept)


class Events:
    """Spark's own event log of what happens from now on, in a folder."""

    def __init__(self, spark: Any, folder: Path) -> None:
        folder.mkdir()
        jvm, self._context = spark._jvm, spark._jsc.sc()
        settings = self._context.getConf().clone().set("spark.eventLog.compress", "false")
        self._log = jvm.org.apache.spark.scheduler.EventLoggingListener(
            "secrets",
            jvm.scala.Option.empty(),
            jvm.java.net.URI(folder.as_uri()),
            settings,
            self._context.hadoopConfiguration(),
        )
        self._log.start()
        self._context.addSparkListener(self._log)

    def close(self) -> None:
        """Write what is left."""
        self._context.listenerBus().waitUntilEmpty()
        self._context.removeSparkListener(self._log)
        self._log.stop()
