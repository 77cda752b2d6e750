"""Fixtures of a whole run: one broker, one Spark session, the recordings."""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

_SESSION = re.compile(r"def \w+\([^)]*\bspark\b|getfixturevalue\(\"spark\"\)|usefixtures\(\"spark\"\)")
"""What uses the session of the whole run, rather than a Spark of its own, or none unless it is a campaign."""
_ORDER = ["with Spark", "with Spark too", "with Kafka", "with Kafka too", "apart", "law", "pure"]
RECORDINGS = Path(__file__).resolve().parents[2] / "shared" / "data"


def pytest_configure() -> None:
    """Spark's JVMs live for minutes here: their optimising compiler would cost more time than it saves."""
    options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    os.environ.setdefault("SPARK_SUBMIT_OPTS", " ".join(options))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test with a broker, Spark or programs beside it is run once more where it fails, and listed as rerun.

    On a machine that stands still for a minute, what others promise within seconds doesn't hold. A test that
    needs nothing beside itself has no such excuse.
    """
    for item in items:
        if any(item.get_closest_marker(name) for name in ("kafka", "spark", "apart")):
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """In parallel, two workers have all files that need Spark's session, two others those that need a broker.

    They begin with them, since they take longest, and share no session; the rest goes file by file to a free
    worker: first the files that start a broker or a program of their own, then the laws, one by one.
    """
    from xdist.scheduler import LoadScopeScheduling

    class LongestFirst(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file, _, test = nodeid.partition("::")
            scope = _scope(config.rootpath / file)
            return f"{scope} {test.partition('[')[0]}" if scope.startswith("law") else scope

        def _assign_work_unit(self, node: Any) -> None:
            self.workqueue.move_to_end(min(self.workqueue, key=_rank), last=False)
            super()._assign_work_unit(node)

    return LongestFirst(config, log)


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


@cache
def _scope(path: Path) -> str:
    text = path.read_text()
    if "mark.apart" in text:
        return f"apart: {path}"
    if "mark.spark" in text and _SESSION.search(text):
        return "with Spark" if "spark_udafs" in path.parts else "with Spark too"
    if "mark.kafka" in text:
        return "with Kafka" if "consumer" in path.parts else "with Kafka too"
    if "mark.spark" in text:
        return f"apart: {path}"
    return f"law: {path}" if "laws" in path.parts else f"pure: {path}"


def _rank(scope: str) -> int:
    return _ORDER.index(scope.split(":")[0])


@pytest.fixture(scope="session")
def recordings() -> Path:
    """The folder of real recordings; tests that need it skip where the project was cloned alone."""
    if not RECORDINGS.is_dir():
        pytest.skip(f"the recordings are not here: no folder {RECORDINGS}")
    return RECORDINGS


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
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One local Spark session for a whole process of tests."""
    from streamgauge.spark_udafs.session.session import session

    tables = tmp_path_factory.mktemp("warehouse")
    config = {"spark.ui.port": "0", "spark.sql.warehouse.dir": str(tables)}
    spark = session("tests", master="local[2]", config=config)
    yield spark
    spark.stop()
