"""The clusters that `streamgauge kafka start` left running, each recorded in a small file."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import FileLock

from ....operators.whole_file import whole_file
from ...environment.cache import cache_folder
from .node import HOST

DEFAULT = "kafka"
"""The default name of a cluster."""


@dataclass(frozen=True, slots=True)
class RunningBroker:
    """One node's process, as recorded in the state file."""

    pid: int
    port: int
    folder: str

    @property
    def address(self) -> str:
        """For ``bootstrap.servers``."""
        return f"{HOST}:{self.port}"

    @property
    def alive(self) -> bool:
        """Whether its process is still that broker, and not another process with the same id."""
        if Path("/proc/self/cmdline").exists():
            try:
                command_line = Path(f"/proc/{self.pid}/cmdline").read_bytes()
            except OSError:
                return False
            command = command_line.replace(b"\0", b" ").decode(errors="replace")
        else:
            ps = ["ps", "-ww", "-o", "command=", "-p", str(self.pid)]
            command = subprocess.run(ps, capture_output=True, text=True).stdout
        return f"kafka.Kafka {self.folder}/" in command


@dataclass(frozen=True, slots=True)
class Running:
    """A cluster of one or more brokers; `folder` has all its data, which is preserved at its end if
    `keep`."""

    brokers: tuple[RunningBroker, ...]
    folder: str
    keep: bool
    started: float
    name: str = DEFAULT

    @property
    def address(self) -> str:
        """For ``bootstrap.servers``."""
        return ",".join(broker.address for broker in self.brokers)

    @property
    def port(self) -> int:
        """The port of its first broker."""
        return self.brokers[0].port

    @property
    def alive(self) -> bool:
        """Whether any of its brokers is alive."""
        return any(broker.alive for broker in self.brokers)

    @property
    def option(self) -> str:
        """The command-line option that selects the cluster."""
        return "" if self.name == DEFAULT else f" --name {self.name}"


def find_running() -> list[Running]:
    """Return the running clusters by name; remove the state files of clusters that are gone."""
    clusters = []
    for file in sorted(_folder().glob("*.json")):
        try:
            fields = json.loads(file.read_text())
            running = Running(
                **{**fields, "brokers": tuple(RunningBroker(**own) for own in fields["brokers"])}
            )
        except (OSError, ValueError, TypeError, KeyError):
            continue
        if running.alive:
            clusters.append(running)
        else:
            forget(running)
    return clusters


def remember(running: Running) -> None:
    """Record detached brokers as a cluster for `status` and `stop`."""
    file = _folder() / f"{running.name}.json"
    with whole_file(file) as unfinished:
        unfinished.write_text(json.dumps(asdict(running)))


def forget(running: Running) -> None:
    """Remove the remains of a cluster whose brokers are gone."""
    if not running.keep:
        shutil.rmtree(running.folder, ignore_errors=True)
    (_folder() / f"{running.name}.json").unlink(missing_ok=True)


def locked(name: str) -> FileLock:
    """Return a lock for commands that start or end this cluster."""
    return FileLock(_folder() / f"{name}.lock")


def _folder() -> Path:
    folder = cache_folder() / "kafka" / "running"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
