"""POST is answered when its messages are delivered, and with 503 while they can't be."""

from __future__ import annotations

import gzip
import threading
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import httpx
import pyarrow as pa
import pytest

from streamgauge.agents.ingest.batch import Batch, IngestError
from streamgauge.agents.ingest.sources.http import Http, HttpSource, messages_of

from ....cases import each


@pytest.fixture
def opened() -> Iterator[Any]:
    sources: list[HttpSource] = []

    def make(**settings: Any) -> HttpSource:
        sources.append(Http(**{"port": 0, **settings}).open(None, {}))
        return sources[-1]

    yield make
    for source in sources:
        source.close()


def post(source: HttpSource, content: bytes, **options: Any) -> Future[httpx.Response]:
    url = f"http://127.0.0.1:{source.port}/"
    return ThreadPoolExecutor(1).submit(lambda: httpx.post(url, content=content, timeout=60, **options))


def read(source: HttpSource, count: int = 1) -> list[Batch]:
    """Batches until there are so many messages."""
    batches: list[Batch] = []
    deadline = time.monotonic() + 300
    while sum(map(len, batches)) < count:
        assert time.monotonic() < deadline, "no message came within five minutes; was the request refused?"
        if (batch := source.read(30)) is not None:
            batches.append(batch)
    return batches


NDJSON = {"headers": {"Content-Type": "application/x-ndjson"}}
JSON = {"headers": {"Content-Type": "application/json; charset=utf-8"}}


def packed(encoding: str) -> dict[str, Any]:
    return {"headers": {"Content-Encoding": encoding}}


@pytest.mark.parametrize(
    ("content", "options", "settings", "values"),
    [
        (b"one\r\n\ntwo", {}, {}, [b"one", b"", b"two"]),
        (b'[{"a": 1}, "b"]', JSON, {}, [b'{"a": 1}', b'"b"']),
        (
            b'[1e400, 0.1000000000000000055, "\\ud800", -0, {"x" : [1,\t2]}]',
            JSON,
            {},
            [b"1e400", b"0.1000000000000000055", b'"\\ud800"', b"-0", b'{"x" : [1,\t2]}'],
        ),
        (gzip.compress(b"one\ntwo", mtime=0), packed("gzip"), {}, [b"one", b"two"]),
        (
            gzip.compress(b"one\n", mtime=0) + gzip.compress(b"two", mtime=0),
            packed("gzip"),
            {},
            [b"one", b"two"],
        ),
        (zlib.compress(b"one"), packed("deflate"), {}, [b"one"]),
        (zlib.compress(b"one")[2:-4], packed("deflate"), {}, [b"one"]),
        (pa.compress(b"one\ntwo", "zstd", asbytes=True), packed("zstd"), {}, [b"one", b"two"]),
        (b' {"a":  1}\n', JSON, {}, [b'{"a":  1}']),
        (
            b'{"a": 1}\n{"a": 2}\n',
            NDJSON,
            {},
            [b'{"a": 1}', b'{"a": 2}'],
        ),
        (b"\xef\xbb\xbf[1, 2]", JSON, {}, [b"1", b"2"]),
        (b'{"n": ' + b"1" * 5_000 + b"}", JSON, {}, [b'{"n": ' + b"1" * 5_000 + b"}"]),
        (b'[{"headers": {"h": "1"}, "body": "\xc3\xa9"}]', JSON, {"format": "flume"}, ["é".encode()]),
    ],
)
def test_bodies_are_messages_and_answered_when_they_are_delivered(
    opened: Any, content: bytes, options: Any, settings: Any, values: list[bytes]
) -> None:
    source = opened(**settings)
    answer = post(source, content, **options)
    (batch,) = read(source)
    assert batch.values() == values and not answer.done()
    batch.acknowledged()
    assert (answer.result(60).status_code, answer.result().json()) == (200, {"messages": len(values)})


def test_what_is_not_delivered_is_refused(opened: Any) -> None:
    source = opened()
    answer = post(source, b"one")
    read(source)[0].refused("no broker")
    assert answer.result(60).status_code == 503 and answer.result().json() == {"error": "no broker"}


def test_full_it_answers_503_at_once(opened: Any) -> None:
    source = opened(capacity=2)
    first = post(source, b"1\n2\n")
    while source.ended:
        pass
    second = post(source, b"3\n").result(60)
    assert second.status_code == 503 and second.headers["Retry-After"] == "1"
    read(source)[0].acknowledged()
    assert first.result(60).status_code == 200


def test_a_delivery_that_takes_too_long(opened: Any) -> None:
    source = opened(seconds=0.2)
    assert "not delivered within 0.2 s" in post(source, b"1").result(60).json()["error"]


def test_who_waits_at_the_end_is_refused(opened: Any) -> None:
    source = opened()
    answer = post(source, b"1")
    while source.ended:
        pass
    closing = threading.Thread(target=source.close)
    closing.start()
    assert answer.result(60).status_code == 503
    closing.join(30)


@pytest.mark.parametrize(
    ("content", "options", "settings", "status", "text"),
    [
        (b"{", JSON, {}, 400, "the body must be JSON"),
        (b"[" * 200_000, JSON, {}, 400, "the body must be JSON"),
        (b'["a"]', JSON, {"format": "flume"}, 400, "an array of events"),
        (b"x" * 2_000, {}, {"max_body": 1_000}, 413, "a body may have at most 1000 bytes"),
        (b"x", {}, {"token": "secret"}, 401, "the token is missing or wrong"),
        (b"x", {"headers": {"Authorization": "Bearer wrong"}}, {"token": "secret"}, 401, "token"),
    ],
)
def test_what_is_wrong_is_said(
    opened: Any, content: bytes, options: Any, settings: Any, status: int, text: str
) -> None:
    answer = post(opened(**settings), content, **options).result(60)
    assert answer.status_code == status and text in answer.json()["error"]


def test_nothing_is_nothing(opened: Any) -> None:
    assert post(opened(), b"").result(60).json() == {"messages": 0}


def test_a_token_lets_in(opened: Any) -> None:
    source = opened(token="secret")
    answer = post(source, b"x", headers={"Authorization": "Bearer secret"})
    read(source)[0].acknowledged()
    assert answer.result(60).status_code == 200


def test_a_port_that_is_taken_is_named(opened: Any) -> None:
    source = opened()
    with pytest.raises(IngestError, match=f"can't listen on 127.0.0.1:{source.port}"):
        opened(port=source.port)


def test_other_machines_need_a_token() -> None:
    with pytest.raises(ValueError, match="token is missing"):
        Http(host="0.0.0.0")


@each("body", [b"1e400", b"null", b'{"a": 1}', b"7"])
def test_an_event_of_flumes_is_a_text(body: bytes) -> None:
    with pytest.raises(ValueError, match="an array of events whose body is a string"):
        messages_of(b'[{"body": ' + body + b"}]", "flume")


@pytest.mark.parametrize(
    ("content", "headers", "status", "reported"),
    [
        (b"one", {"Content-Encoding": "br"}, 415, "must be one of identity, gzip, deflate, zstd, got 'br'"),
        (b"one", {"Content-Encoding": "gzip, gzip"}, 415, "got 'gzip, gzip'"),
        (b"one", {"Content-Encoding": "gzip"}, 400, "isn't gzip"),
        (gzip.compress(b"one", mtime=0)[:-9], {"Content-Encoding": "gzip"}, 400, "isn't gzip"),
        (zlib.compress(b"one")[:-6], {"Content-Encoding": "deflate"}, 400, "isn't deflate"),
        (pa.compress(b"one", "zstd", asbytes=True)[:-2], {"Content-Encoding": "zstd"}, 400, "isn't zstd"),
        (gzip.compress(bytes(5_000), mtime=0), {"Content-Encoding": "gzip"}, 413, "1000 bytes uncompressed"),
        (pa.compress(bytes(5_000), "zstd", asbytes=True), {"Content-Encoding": "zstd"}, 413, "uncompressed"),
        (b"one", {"Host": "example.org"}, 421, "got example.org"),
        (b"one", {"Origin": "https://example.org"}, 421, "example.org"),
        (b"[1, NaN]", JSON["headers"], 400, "must be JSON"),
        (b"NaN", JSON["headers"], 400, "must be JSON"),
        ("[1, 2]".encode("utf-16"), JSON["headers"], 400, "must be JSON"),
        (zlib.compress(b"one") + b"two", {"Content-Encoding": "deflate"}, 400, "3 bytes follow its end"),
    ],
)
def test_what_cannot_be_taken_is_refused_with_the_reason(
    opened: Any, content: bytes, headers: dict[str, str], status: int, reported: str
) -> None:
    source = opened(max_body=1_000)
    answer = post(source, content, headers=headers).result(60)
    assert answer.status_code == status and reported in answer.json()["error"]
    assert source.inbox.empty
