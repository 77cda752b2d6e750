"""Spark's own standalone cluster on this machine: a master and workers that share nothing but the network.

Each worker has a folder of its own, with its work, its Python environment, in which the package lies as it
would be installed, its home and its user's cache. All of them call their interpreter ``cluster-python``.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

import pyspark

from streamgauge.apps.java import find_java

ROOT = Path(__file__).resolve().parents[3]
PYTHON = "cluster-python"
"""What each worker calls its interpreter."""
_HOST = "127.0.0.1"
_LOGGING = """\
rootLogger.level = info
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss.SSS} %p %c{1}: %m%n%ex
"""
_JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true")
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
            for child in _below(self.process.pid):
                _kill(child)
            self.process.kill()
        self.process.wait()


class Worker(Process):
    """A worker that stands for a machine: what its executors see lies in its own folder."""

    def __init__(self, folder: Path, master: str, env: Mapping[str, str] = {}, cores: int = 1) -> None:
        self.folder = folder
        own = {
            "PATH": f"{folder / 'environment' / 'bin'}:{os.environ['PATH']}",
            "HOME": str(folder / "home"),
            "STREAMGAUGE_CACHE": str(folder / "cache"),
            "PYTHONPATH": "",
        }
        (folder / "home").mkdir(parents=True, exist_ok=True)
        super().__init__(
            folder,
            "worker.Worker",
            *("--host", _HOST, "--port", "0", "--webui-port", "0", "--cores", str(cores), "--memory", "2g"),
            *("--work-dir", str(folder / "work"), master),
            env={**own, **env},
        )
        self.says("Successfully (registered) with master")

    def executors(self) -> list[int]:
        """The processes of its executors."""
        return [child for child in _children(self.process.pid) if "CoarseGrained" in _command(child)]

    def python(self) -> list[int]:
        """The Python processes of its executors."""
        return [child for child in _below(self.process.pid) if "python" in _command(child).split("\0")[0]]


class Cluster:
    """A master and two workers of a core each."""

    def __init__(self, folder: Path, workers: int = 2, installed: bool = True) -> None:
        self.folder, self.installed = folder, installed
        self.master = Process(
            folder / "master", "master.Master", "--host", _HOST, "--port", "0", "--webui-port", "0"
        )
        self.url = self.master.says(r"Starting Spark master at (spark://\S+)")
        self.workers: list[Worker] = []
        for _ in range(workers):
            self.add_worker()

    def add_worker(self, env: Mapping[str, str] = {}) -> Worker:
        """Another machine."""
        folder = self.folder / f"worker-{len(self.workers)}"
        if self.installed:
            install(folder / "environment")
        self.workers.append(Worker(folder, self.url, env))
        return self.workers[-1]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in (*self.workers, self.master):
            process.kill()


def install(environment: Path) -> None:
    """Make an environment with the package's own files, and all that it needs from this one's packages.

    Under the name `PYTHON` it runs as an interpreter of its own, whose kernels lie beside its own files.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    packages = Path(next(iter(environment.glob("lib/python3*/site-packages"))))
    (packages / "shared.pth").write_text(sysconfig.get_path("purelib") + "\n")
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    for name in settings["packages"]:
        folder = Path(*name.split(".")[1:])
        target = packages / "streamgauge" / folder
        target.mkdir(parents=True, exist_ok=True)
        files = [*(ROOT / folder).glob("*.py"), *(ROOT / folder).glob("*.csv")]
        files += (ROOT / folder).glob("*.properties")
        for file in files:
            shutil.copy(file, target / file.name)
    (environment / "bin" / PYTHON).symlink_to("python")


def _children(process: int) -> Iterator[int]:
    for listed in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            yield from map(int, listed.read_text().split())
        except OSError:
            continue


def _below(process: int) -> list[int]:
    """All processes that a process has started, and those that they have."""
    found = []
    for child in _children(process):
        found += [child, *_below(child)]
    return found


def _command(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_text()
    except OSError:
        return ""


def _kill(process: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def cpu_seconds(process: int) -> float:
    """What a process and all below it have used of a core, those that have ended included."""
    ticks = 0
    for one in (process, *_below(process)):
        try:
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")
