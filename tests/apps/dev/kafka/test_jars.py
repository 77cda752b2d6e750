"""Kafka's jars: fetched once, checked, and a clear word where they can't be had."""

from __future__ import annotations

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from streamgauge.apps.dev.kafka import jars
from streamgauge.apps.dev.kafka.jars import JarsError, kafka_jars

SMALL = {"a-1.jar": b"alpha", "b-2.jar": b"beta"}


class Nothing(BaseHTTPRequestHandler):
    """A registry without a single file."""

    def do_GET(self) -> None:
        self.send_error(404)

    do_HEAD = do_GET

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder and an empty home."""
    monkeypatch.setenv("STREAMGAUGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("STREAMGAUGE_IVY_SETTINGS", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def registry(cache: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """A registry of two small jars; the list grows by each fetch from it."""
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in SMALL.items()}
    fetches: list[Path] = []

    def fetch(scratch: Path, into: Path) -> None:
        fetches.append(into)
        into.mkdir()
        for name, content in SMALL.items():
            (into / name).write_bytes(content)

    monkeypatch.setattr(jars, "expected", lambda: sums)
    monkeypatch.setattr(jars, "_run_ivy", fetch)
    return fetches


def test_the_jars_are_fetched_once(registry: list[Path]) -> None:
    folder = kafka_jars()
    assert kafka_jars() == folder
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == SMALL
    assert len(registry) == 1
    assert [path.name for path in folder.parent.iterdir() if path.name.startswith(".fetch")] == []


@pytest.mark.parametrize("harm", ["cut", "altered", "missing"])
def test_a_damaged_cache_is_fetched_again(registry: list[Path], harm: str) -> None:
    jar = kafka_jars() / "b-2.jar"
    if harm == "missing":
        jar.unlink()
    else:
        jar.write_bytes(b"be" if harm == "cut" else b"beto")
    assert (kafka_jars() / "b-2.jar").read_bytes() == b"beta"
    assert len(registry) == 2


def test_two_at_once_fetch_once(registry: list[Path]) -> None:
    both = threading.Barrier(2)

    def get() -> None:
        both.wait()
        kafka_jars()

    threads = [threading.Thread(target=get) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(registry) == 1
    assert jars.faults(kafka_jars()) == []


def test_an_altered_download_is_refused(registry: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SMALL, "a-1.jar", b"something else")
    with pytest.raises(JarsError, match=r"a-1\.jar has other contents than it should"):
        kafka_jars()
    monkeypatch.setitem(SMALL, "a-1.jar", b"alpha")
    assert jars.faults(kafka_jars()) == []


def test_an_interrupted_fetch_leaves_nothing(
    registry: list[Path], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(scratch: Path, into: Path) -> None:
        into.mkdir()
        (into / "a-1.jar").write_bytes(b"alpha")
        raise KeyboardInterrupt

    monkeypatch.setattr(jars, "_run_ivy", interrupted)
    with pytest.raises(KeyboardInterrupt):
        kafka_jars()
    assert [path.name for path in (cache / "kafka").iterdir() if path.is_dir()] == []


@pytest.mark.kafka
def test_no_network_says_so(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A proxy that nobody runs: every connection is refused, as with no network.
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.delenv("NO_PROXY", raising=False)
    with pytest.raises(JarsError, match=r"was not reached.*HTTPS_PROXY"):
        kafka_jars()


@pytest.mark.kafka
def test_a_mirror_of_mavens_settings_is_asked(cache: Path, tmp_path: Path) -> None:
    settings = tmp_path / ".m2" / "settings.xml"
    settings.parent.mkdir()
    settings.write_text(
        '<settings xmlns="http://maven.apache.org/SETTINGS/1.2.0"><mirrors><mirror><id>ours</id>'
        "<mirrorOf>central</mirrorOf><url>http://127.0.0.1:1/mirror</url></mirror></mirrors></settings>"
    )
    with pytest.raises(JarsError, match=r"127\.0\.0\.1:1/mirror/org/apache/kafka"):
        kafka_jars()


@pytest.mark.kafka
def test_a_registry_that_lacks_them_is_named(cache: Path, tmp_path: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Nothing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/"
        settings = tmp_path / ".m2" / "settings.xml"
        settings.parent.mkdir()
        mirror = f"<mirrorOf>*</mirrorOf><url>{address}</url>"
        settings.write_text(f"<settings><mirrors><mirror>{mirror}</mirror></mirrors></settings>")
        with pytest.raises(JarsError, match=r"registry lacks org\.apache\.kafka.*settings\.xml"):
            kafka_jars()
        server.shutdown()


@pytest.mark.parametrize(
    ("environ", "options"),
    [
        ({}, []),
        ({"HTTPS_PROXY": "http://box:3128"}, ["-Dhttps.proxyHost=box", "-Dhttps.proxyPort=3128"]),
        ({"http_proxy": "box:8080"}, ["-Dhttp.proxyHost=box", "-Dhttp.proxyPort=8080"]),
        ({"NO_PROXY": "localhost,.corp"}, ["-Dhttp.nonProxyHosts=localhost|*.corp"]),
    ],
)
def test_the_environments_proxies_become_javas(environ: dict[str, str], options: list[str]) -> None:
    assert jars._proxy_options(environ) == options


def test_without_ivy_the_package_to_install_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(JarsError, match="with its extra 'apps'"):
        jars._ivy_jar()


def test_no_registry_is_named_in_the_list_of_sums() -> None:
    sums = jars.expected()
    assert f"kafka_2.13-{jars.KAFKA}.jar" in sums
    assert all(len(digest) == 64 and name.endswith(".jar") for name, digest in sums.items())
