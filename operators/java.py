"""Find a Java that can run Spark and Kafka, or say how to install one.

It imports nothing outside the standard library, so a set-up can run this file on its own:
``python operators/java.py`` prints the path of a suitable `java`; with ``--install``, on Debian as root, it
first installs a headless one if none is found.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..sketches.core.errors import StreamgaugeError

MINIMUM = 17
"""Spark 4 and Kafka 4 need Java 17 or newer."""

_FOLDERS = (
    "/usr/lib/jvm/*",
    "/usr/java/*",
    "/opt/java/*",
    "/opt/jdk*",
    "/opt/homebrew/opt/openjdk*",
    "/usr/local/opt/openjdk*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "~/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "~/.sdkman/candidates/java/*",
    "~/.jdks/*",
    "C:/Program Files/Java/*",
    "C:/Program Files/Eclipse Adoptium/*",
)
"""Where installers put Java, besides ``$JAVA_HOME`` and ``$PATH``."""


class JavaError(StreamgaugeError, RuntimeError):
    """No Java, or none that is new enough; the message says what was found and what installs one."""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java on this machine: the program, its major version, and its home folder."""

    program: Path
    version: int

    @property
    def home(self) -> Path:
        """The folder for ``JAVA_HOME``."""
        return self.program.resolve().parent.parent


def find_java(minimum: int = MINIMUM, install: bool = False) -> Java:
    """The first Java of at least version `minimum`: ``$JAVA_HOME``, then ``$PATH``, then the usual folders.

    With `install`, if none is found, the system is Debian or derived from it, and the user is root, a
    headless runtime is installed by apt-get. Raises `JavaError`, which names the Javas found and what to do.
    """
    javas: list[Java] = []
    for program in _candidates():
        version = _version(program)
        if version is None:
            continue
        if version >= minimum:
            return Java(program, version)
        javas.append(Java(program, version))
    if install and _can_install():
        _install(minimum)
        return find_java(minimum, install=False)
    raise JavaError(_advice(javas, minimum))


def _candidates() -> Iterator[Path]:
    name = "java.exe" if sys.platform == "win32" else "java"
    seen: set[Path] = set()

    def programs() -> Iterator[Path]:
        if home := os.environ.get("JAVA_HOME"):
            yield Path(home) / "bin" / name
        if on_path := shutil.which("java"):
            yield Path(on_path)
        for pattern in _FOLDERS:
            whole = Path(pattern).expanduser()
            at = next(i for i, part in enumerate(whole.parts) if "*" in part)
            root = Path(*whole.parts[:at])
            yield from sorted(root.glob(str(Path(*whole.parts[at:], "bin", name))), reverse=True)

    for program in programs():
        if program.is_file() and (real := program.resolve()) not in seen:
            seen.add(real)
            yield program


def _version(program: Path) -> int | None:
    """The major version that a `java` reports, or None if it doesn't run (such as macOS's stub)."""
    try:
        said = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(\d+)(?:\.(\d+))?', said.stderr + said.stdout)
    if said.returncode != 0 or match is None:
        return None
    # Up to Java 8, versions were called 1.8.
    return int(match[2] or 0) if match[1] == "1" else int(match[1])


def _can_install() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("apt-get") is not None


def _install(minimum: int) -> None:
    """Install the oldest packaged headless runtime that is new enough, like Debian's own default."""
    subprocess.run(["apt-get", "update", "-qq"], check=False)
    known = subprocess.run(["apt-cache", "pkgnames", "openjdk-"], capture_output=True, text=True).stdout
    versions = sorted(int(v) for v in re.findall(r"^openjdk-(\d+)-jre-headless$", known, re.MULTILINE))
    fitting = [v for v in versions if v >= minimum]
    if not fitting:
        raise JavaError(
            f"apt knows no openjdk-…-jre-headless of version {minimum} or newer; "
            f"install Java {minimum} by hand and set JAVA_HOME to its folder"
        )
    package = f"openjdk-{fitting[0]}-jre-headless"
    print(f"installing {package}", file=sys.stderr)
    done = subprocess.run(
        ["apt-get", "install", "-y", "-qq", "--no-install-recommends", package],
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        stdout=sys.stderr,
    )
    if done.returncode != 0:
        raise JavaError(
            f"apt-get could not install {package} (its messages are above); "
            f"install Java {minimum} or newer by hand and set JAVA_HOME to its folder"
        )


def _advice(javas: list[Java], minimum: int) -> str:
    if javas:
        listed = ", ".join(f"Java {java.version} at {java.program}" for java in javas)
        problem = f"Java {minimum} or newer is needed, and only {listed} was found"
    else:
        where = "in JAVA_HOME, on PATH or in the usual folders"
        problem = f"Java {minimum} or newer is needed, and none was found {where}"
    if sys.platform == "darwin":
        remedy = f"`brew install openjdk@{minimum}` installs it"
    elif sys.platform == "win32":
        remedy = f"install a JDK {minimum}, for example Eclipse Temurin"
    elif shutil.which("apt-get"):
        remedy = f"`sudo apt-get install openjdk-{minimum}-jre-headless` installs it"
    elif shutil.which("dnf"):
        remedy = f"`sudo dnf install java-{minimum}-openjdk-headless` installs it"
    else:
        remedy = f"install a Java runtime {minimum} or newer"
    return f"{problem}; {remedy}, or set JAVA_HOME to the folder of one"


if __name__ == "__main__":
    try:
        print(find_java(install="--install" in sys.argv[1:]).program)
    except JavaError as error:
        sys.exit(f"error: {error}")
