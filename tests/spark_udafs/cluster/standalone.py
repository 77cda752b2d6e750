"""Spark's own standalone cluster on this machine: a master and workers that share nothing but the network.

Each worker has a folder of its own, with its work, its Python environment, in which the package lies as it
would be installed, its home and its user's cache. All of them call their interpreter ``cluster-python``.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Self

import pyspark

from streamgauge.operators.java import find_java
from streamgauge.sketches.core.compilation.kernel_cache import folders

from ...examples import FLOORS

ROOT = Path(__file__).resolve().parents[3]
PYTHON = "cluster-python"
"""What each worker calls its interpreter."""
_HOST = "127.0.0.1"
HOSTS = (_HOST, "127.0.0.2")
"""Of loopback: to Spark, workers on these are on two machines."""
SETTINGS = {
    "spark.driver.host": _HOST,
    "spark.executor.memory": "700m",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "4",
    "spark.ui.enabled": "false",
}
"""Of the drivers of tests: what two small executors on this machine need."""
_LOGGING = """\
rootLogger.level = info
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss.SSS} %p %c{1}: %m%n%ex
"""
_OPENED = (
    *("java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util"),
    *("java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref", "sun.nio.ch", "sun.nio.cs"),
)
"""Packages that Spark's own scripts open: Arrow writes to its memory through them."""
_JVM = (
    *("-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true"),
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
    "-Dio.netty.tryReflectionSetAccessible=true",
)
_SCALA = {"SPARK_SCALA_VERSION": "2.13"}
"""What the scripts of a distribution set; the launcher of executors takes its class path by it."""
_START_SECONDS = 180.0


class Process:
    """A master or a worker: a JVM that logs to a file."""

    def __init__(self, folder: Path, main: str, *arguments: str, env: Mapping[str, str] = {}) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        logging = folder / "log4j2.properties"
        logging.write_text(_LOGGING)
        home = Path(pyspark.__path__[0])
        self.log = folder / "log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *(str(find_java().program), *_JVM, f"-Dlog4j2.configurationFile={logging.as_uri()}"),
                    *("-cp", f"{home / 'jars'}/*", f"org.apache.spark.deploy.{main}", *arguments),
                ],
                env={**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": _HOST, **_SCALA, **env},
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def says(self, pattern: str) -> str:
        """Wait until the log matches; what the first group matched."""
        deadline = time.monotonic() + _START_SECONDS
        while (match := re.search(pattern, self.log.read_text(errors="replace"))) is None:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"no {pattern!r} in {self.log}:\n{self.log.read_text()[-3000:]}")
            time.sleep(0.05)
        return match[1]

    def kill(self) -> None:
        """Kill it and what it started, as a machine that fails does."""
        if self.process.poll() is None:
            for child in descendants(self.process.pid):
                _kill(child)
            self.process.kill()
        self.process.wait()


class Worker(Process):
    """A worker that stands for a machine: what its executors see lies in its own folder."""

    def __init__(self, folder: Path, master: str, env: Mapping[str, str] = {}, host: str = _HOST) -> None:
        self.folder = folder
        own = {
            # Nothing of this process's environment, in which the package may be installed.
            "PATH": f"{folder / 'environment' / 'bin'}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(folder / "home"),
            "STREAMGAUGE_CACHE": str(folder / "cache"),
            "PYTHONPATH": "",
            "SPARK_LOCAL_IP": host,
        }
        (folder / "home").mkdir(parents=True, exist_ok=True)
        super().__init__(
            folder,
            "worker.Worker",
            *("--host", host, "--port", "0", "--webui-port", "0", "--cores", "1", "--memory", "2g"),
            *("--work-dir", str(folder / "work"), master),
            env={**own, **env},
        )
        self.says("Successfully (registered) with master")


class Cluster:
    """A master and two workers of a core each."""

    def __init__(self, folder: Path, workers: int = 2, installed: bool = True, warm: bool = True) -> None:
        self.folder, self._installed, self._warm = folder, installed, warm
        self.master = Process(
            folder / "master", "master.Master", "--host", _HOST, "--port", "0", "--webui-port", "0"
        )
        self.url = self.master.says(r"Starting Spark master at (spark://\S+)")
        self.workers: list[Worker] = []
        self._added = 0
        for _ in range(workers):
            self.add_worker()

    def add_worker(self, env: Mapping[str, str] = {}, host: str = _HOST) -> Worker:
        """Another machine, to Spark only if it has a `host` of its own."""
        folder = self.folder / f"worker-{self._added}"
        self._added += 1
        if self._installed:
            install(folder / "environment", self._warm)
        self.workers.append(Worker(folder, self.url, env, host))
        return self.workers[-1]

    def replace_dead(self) -> None:
        """Another worker for each that has ended."""
        for worker in [worker for worker in self.workers if worker.process.poll() is not None]:
            self.workers.remove(worker)
            self.add_worker()

    def run(self, seconds: float = 900, **given: Any) -> dict[str, Any]:
        """What the jobs of a driver (`driver.py`) gave, whose environment is not that of the workers."""
        driver = self.start(**given)
        try:
            output, complaints = driver.communicate(timeout=seconds)
        finally:
            end(driver)
        assert driver.returncode == 0, complaints[-6000:]
        return reports(output)

    def start(
        self, output: int | IO[str] = subprocess.PIPE, errors: int | IO[str] = subprocess.PIPE, **given: Any
    ) -> subprocess.Popen[str]:
        """A driver in client mode, in a process group of its own. Long ones write to files: pipes fill up."""
        programs = self.folder / "driver" / "bin"
        if not programs.is_dir():
            programs.mkdir(parents=True)
            program = programs / PYTHON
            program.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
            program.chmod(0o755)
        settings = {**SETTINGS, **given.pop("config", {})}
        environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", **given.pop("env", {})}
        if self._installed:
            environment.setdefault("PYSPARK_PYTHON", PYTHON)
        else:
            environment.pop("PYSPARK_PYTHON", None)
        return subprocess.Popen(
            [
                *(sys.executable, str(Path(__file__).with_name("driver.py"))),
                json.dumps({"master": self.url, "config": settings, **given}, default=str),
            ],
            env=environment,
            stdout=output,
            stderr=errors,
            text=True,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in (*self.workers, self.master):
            process.kill()


def reports(output: str) -> dict[str, Any]:
    """What a driver has printed."""
    result: dict[str, Any] = {}
    for line in output.splitlines():
        result.update(json.loads(line))
    return result


def end(driver: subprocess.Popen[str]) -> None:
    """Kill a driver and all that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()


def install(environment: Path, warm: bool = True) -> None:
    """Make an environment with the package's own files, and all that it needs from this one's packages.

    Under the name `PYTHON` it runs as an interpreter of its own. Its kernels lie beside its own files: those
    that this machine has, as after ``streamgauge env warm``, or none.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    packages = Path(next(iter(environment.glob("lib/python3*/site-packages"))))
    (packages / "shared.pth").write_text(sysconfig.get_path("purelib") + "\n")
    below = [path.parent for floor in (*FLOORS, "spark") for path in (ROOT / floor).rglob("__init__.py")]
    for folder in (ROOT, *below):
        target = packages / "streamgauge" / folder.relative_to(ROOT)
        target.mkdir(parents=True, exist_ok=True)
        for file in (file for name in ("*.py", "*.csv", "*.properties") for file in folder.glob(name)):
            shutil.copy(file, target / file.name)
    kernels = packages / "__pycache__" / "streamgauge-kernels"
    kernels.mkdir(parents=True)
    if warm:
        for kernel in (kernel for folder in reversed(folders()) for kernel in folder.glob("*.kernel")):
            shutil.copy(kernel, kernels / kernel.name)
    (environment / "bin" / PYTHON).symlink_to("python")


def executors(worker: Worker) -> list[int]:
    """The JVMs of a worker's executors."""
    return list(_children(worker.process.pid))


def _children(process: int) -> Iterator[int]:
    for listed in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            yield from map(int, listed.read_text().split())
        except OSError:
            continue


def descendants(process: int) -> list[int]:
    """All processes that a process has started, and those that they have."""
    below = []
    for child in _children(process):
        below += [child, *descendants(child)]
    return below


def _kill(process: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
