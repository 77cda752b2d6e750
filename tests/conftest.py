"""Fixtures of the whole run: one broker, one Spark session, the recordings."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

_BROKER = "broker"
RECORDINGS = Path(__file__).resolve().parents[2] / "shared" / "data"


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """In parallel, one worker has all files that need the broker or Spark; the others go file by file.

    That worker begins with them: they take longest, and files with more but shorter tests would go first.
    """
    from xdist.scheduler import LoadScopeScheduling

    class OneBroker(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _room(config.rootpath / nodeid.split("::")[0])

        def _assign_work_unit(self, node: Any) -> None:
            if _BROKER in self.workqueue:
                self.workqueue.move_to_end(_BROKER, last=False)
            super()._assign_work_unit(node)

    return OneBroker(config, log)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the tables that tests have recorded as their property `table`."""
    for report in [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]:
        for name, told in report.user_properties:
            if name == "table":
                terminalreporter.section(report.nodeid.split("::")[-1])
                terminalreporter.write_line(told)


@cache
def _room(path: Path) -> str:
    text = path.read_text()
    return _BROKER if "mark.kafka" in text or "mark.spark" in text else str(path)


@pytest.fixture(scope="session")
def recordings() -> Path:
    """The folder of real recordings; tests that need it skip where the project was cloned alone."""
    if not RECORDINGS.is_dir():
        pytest.skip(f"the recordings are not here: no folder {RECORDINGS}")
    return RECORDINGS


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One embedded broker for the whole run; `kafka.bootstrap_servers` is its address.

    `kafka.proxied` is its address by way of `kafka.proxy`, which delays, loses and resets what passes.
    """
    from .faulty_proxy import ProxiedKafka

    with ProxiedKafka(data=tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One local Spark session for the whole run."""
    from streamgauge.spark_udafs.session import session

    spark = session("tests", master="local[2]", config={"spark.ui.port": "0"})
    yield spark
    spark.stop()
