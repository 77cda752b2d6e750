"""The clusters that `streamgauge kafka start` left running: which there are, kept in one small file each."""

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
"""The name of a cluster that was given none."""


@dataclass(frozen=True, slots=True)
class RunningBroker:
    """One node's process, as the state file says."""

    pid: int
    port: int
    folder: str

    @property
    def address(self) -> str:
        """For ``bootstrap.servers``."""
        return f"{HOST}:{self.port}"

    @property
    def alive(self) -> bool:
        """Whether its process is that broker still, not another one that got its number since."""
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
    """A cluster of one broker or more; `folder` has all its data, which stays after its end if `keep`."""

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
        """Whether any of its brokers is."""
        return any(broker.alive for broker in self.brokers)

    @property
    def option(self) -> str:
        """How a command names it."""
        return "" if self.name == DEFAULT else f" --name {self.name}"


def find_running() -> list[Running]:
    """The clusters that run, by name; state files of those that are gone are cleared away."""
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
    """Make detached brokers a cluster that `status` shows and `stop` ends."""
    file = _folder() / f"{running.name}.json"
    with whole_file(file) as unfinished:
        unfinished.write_text(json.dumps(asdict(running)))


def forget(running: Running) -> None:
    """Clear away what is left of a cluster whose brokers are gone."""
    if not running.keep:
        shutil.rmtree(running.folder, ignore_errors=True)
    (_folder() / f"{running.name}.json").unlink(missing_ok=True)


def locked(name: str) -> FileLock:
    """A lock that only one command that starts or ends this cluster has at a time."""
    return FileLock(_folder() / f"{name}.lock")


def _folder() -> Path:
    folder = cache_folder() / "kafka" / "running"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
