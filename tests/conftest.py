"""Fixtures of a whole run: one broker, one Spark session, the recordings."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

TRUSTING = ("-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote")
"""For JVMs of tests: dozens start, and loading classes is most of their work, which checks make longer."""


def pytest_configure() -> None:
    """Spark's JVMs live for minutes here: their optimising compiler would cost more time than it saves."""
    options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *TRUSTING]
    os.environ.setdefault("SPARK_SUBMIT_OPTS", " ".join(options))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Modules and tests stay to the end: to look for garbage among them takes a quarter of collecting."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test with a broker, Spark or programs beside it is run once more where it fails, and listed as rerun.

    On a machine that stands still for a minute, what others promise within seconds doesn't hold. A test that
    needs nothing beside itself has no such excuse.
    """
    for item in items:
        if any(item.get_closest_marker(name) for name in ("kafka", "spark", "apart")):
            item.add_marker(pytest.mark.flaky(reruns=1))


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes are named by their parameter: packed ones may hold the time, and all workers need one name."""
    return argname if isinstance(val, bytes) else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Two workers begin with files that need Spark, others with those that need a broker."""
    from .scheduling import ByNeed

    return ByNeed(config, log)


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> Generator[None, int, int]:
    """One worker more than there are cores: those with Spark and a broker wait for them half of the time."""
    return (yield) + ("not spark" not in config.option.markexpr)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the tables that tests have recorded as their property `table`."""
    for report in [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]:
        for name, reported in report.user_properties:
            if name == "table":
                terminalreporter.section(report.nodeid.split("::")[-1])
                terminalreporter.write_line(reported)


@pytest.fixture(scope="session", autouse=True)
def _brokers_that_start_sooner() -> Iterator[None]:
    """Brokers of this process don't check the classes that they load either."""
    from streamgauge.apps.dev.kafka import broker

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(broker, "_JVM", (*broker._JVM, *TRUSTING))
        yield


def recordings_folder() -> Path | None:
    """The folder that STREAMGAUGE_RECORDINGS names."""
    named = os.environ.get("STREAMGAUGE_RECORDINGS")
    return Path(named) if named else None


@pytest.fixture(scope="session")
def recordings() -> Path:
    """The folder of others' recordings; tests that need it skip if none is named."""
    if (folder := recordings_folder()) is None:
        pytest.skip("needs others' recordings: name their folder by STREAMGAUGE_RECORDINGS (CONTRIBUTING.md)")
    return folder


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One embedded broker for a whole process of tests; `kafka.bootstrap_servers` is its address.

    `kafka.proxied` is its address by way of `kafka.proxy`, which delays, loses and resets what passes.
    """
    from streamgauge.apps.dev.kafka.broker import PortTakenError

    from .faulty_proxy import ProxiedKafka

    for tries in range(5):
        broker = ProxiedKafka(data=tmp_path_factory.mktemp("kafka"))
        try:
            broker.start()
            break
        except PortTakenError:  # by another worker, since it was found to be free
            broker.proxy.close()
            if tries == 4:
                raise
    with broker:
        yield broker


@pytest.fixture(scope="session")
def s3() -> Iterator[dict[str, Any]]:
    """What a filesystem of S3 needs for a server on loopback that has the bucket "streams".

    It is one for a whole process of tests: all servers of moto in a process hold the same buckets.
    """
    import s3fs
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    options = {"key": "any", "secret": "any", "endpoint_url": f"http://{host}:{port}"}
    s3fs.S3FileSystem(**options).mkdir("streams")
    yield options
    server.stop()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One local Spark session for a whole process of tests."""
    from streamgauge.spark_udafs.session.session import session

    tables = tmp_path_factory.mktemp("warehouse")
    config = {"spark.ui.port": "0", "spark.sql.warehouse.dir": str(tables)}
    spark = session("tests", master="local[2]", config=config)
    yield spark
    spark.stop()


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[Any]:
    """A broker to be stopped and started."""
    from streamgauge.apps.dev.kafka.broker import EmbeddedKafka

    with EmbeddedKafka(data=tmp_path / "data") as broker:
        yield broker
