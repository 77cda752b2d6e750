"""Set up the project's environment: ``python apps/set_up.py .venv``, what `make` runs in a new clone.

Only the standard library is there yet. pip's own output, some hundred lines, becomes one bar on a terminal
and a line now and then elsewhere; all of it is shown if pip fails. Spark comes first, as the Ivy among its
jars fetches Kafka's while pip goes on with the rest.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_FIRST = ("pyspark>=", "rich>=", "filelock>=", "platformdirs>=")
"""What fetching Kafka's jars needs."""
_RAW = ("--progress-bar", "raw")
"""How pip reports what it fetches for others to show, from version 24.1 on."""
_BAR = 24
_LINE_SECONDS = 10.0
_MB = 1_000_000


class Shown:
    """What is going on, in one line that is written over on a terminal."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._begin = time.monotonic()
        self._written = -_LINE_SECONDS
        self._terminal = sys.stderr.isatty()

    def update(self, text: str) -> None:
        """Say how far it is."""
        now = time.monotonic()
        if now - self._written < (0.1 if self._terminal else _LINE_SECONDS):
            return
        self._written = now
        line = f"{self._what}: {text} ({now - self._begin:.0f} s)"
        print(f"\r\x1b[K{line[:100]}" if self._terminal else line, end="", file=sys.stderr)
        print("" if self._terminal else "\n", end="", file=sys.stderr, flush=True)

    def done(self) -> None:
        """Say that it is done, and how long it took."""
        begin = "\r\x1b[K✓ " if self._terminal else ""
        print(f"{begin}{self._what} ({time.monotonic() - self._begin:.0f} s)", file=sys.stderr, flush=True)


def progress(lines: Iterable[str]) -> Iterator[str]:
    """What each line of ``pip install --progress-bar raw`` says of its progress, in a few words.

    >>> list(progress(["Collecting rich>=13", "Downloading rich-14.0-py3-none-any.whl (243 kB)"]))
    ['finding out about rich', 'fetching rich-14.0']
    >>> list(progress(["Downloading rich-14.0.tar.gz (2.4 MB)", "Progress 1200000 of 2400000"]))[-1]
    'fetching rich-14.0 ############············ 1.2 of 2.4 MB'
    """
    name = ""
    for line in lines:
        if (match := re.match(r"\s*Collecting ([\w.-]+)", line)) is not None:
            yield f"finding out about {match[1]}"
        elif (match := re.match(r"\s*(?:Downloading|Using cached) (\S+)", line)) is not None:
            name = re.sub(r"(-py\d.*|-cp\d.*|\.tar\.gz|\.zip|\.whl.*)$", "", match[1].rpartition("/")[2])
            yield f"fetching {name}"
        elif (match := re.match(r"\s*Progress (\d+) of (\d+)", line)) is not None:
            done, whole = int(match[1]), max(int(match[2]), 1)
            bar = "#" * (_BAR * done // whole)
            yield f"fetching {name} {bar:·<{_BAR}} {done / _MB:.1f} of {whole / _MB:.1f} MB"
        elif (match := re.match(r"\s*(?:Building|Preparing|Installing|Getting) .*", line)) is not None:
            yield " ".join(match[0].split())[:60]


def first_requirements(pyproject: str) -> list[str]:
    """Those of the project's requirements that are installed first.

    >>> first_requirements('deps = ["rich>=13.7", "typer>=0.15", "pyspark>=4.3,<4.4", # why')
    ['rich>=13.7', 'pyspark>=4.3,<4.4']
    """
    return [match for match in re.findall(r'"([^"]+)"', pyproject) if match.startswith(_FIRST)]


def install(python: Path, what: str, *requirements: str) -> None:
    """Have pip install something. Exits with pip's own output and code if it fails."""
    pip = subprocess.Popen(
        [python, "-m", "pip", "--disable-pip-version-check", "install", *requirements],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    assert pip.stdout is not None
    shown, output = Shown(what), []

    def lines() -> Iterator[str]:
        assert pip.stdout is not None
        for line in pip.stdout:
            if not line.startswith("Progress "):
                output.append(line)
            yield line

    for text in progress(lines()):
        shown.update(text)
    if pip.wait():
        print("".join(["\n", *output]), file=sys.stderr)
        raise SystemExit(pip.returncode)
    shown.done()


def importable(folder: Path) -> dict[str, str]:
    """An environment in which the package can be imported before it is installed."""
    # The root is the package under another name than its folder's.
    package = folder / "src" / "streamgauge"
    package.parent.mkdir(exist_ok=True)
    if not package.is_symlink():
        package.symlink_to(ROOT, target_is_directory=True)
    return {**os.environ, "PYTHONPATH": str(package.parent)}


def fetching_jars(python: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """Begin to fetch Kafka's jars. Whoever needs them fetches what is missing, and says why it can't."""
    return quietly(
        python, environment, "from streamgauge.apps.dev.kafka.jars import kafka_jars; kafka_jars()"
    )


def compiling(python: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """Begin to compile the package's modules to bytecode, as pip does with all others.

    Where PYTHONDONTWRITEBYTECODE is set, as in many containers, each process would compile them again.
    """
    folders = [str(path) for path in ROOT.iterdir() if path.is_dir() and path.name[0] not in "._"]
    code = f"import compileall\nfor folder in {folders}: compileall.compile_dir(folder, quiet=2)"
    return quietly(python, environment, code)


def quietly(python: Path, environment: dict[str, str], code: str) -> subprocess.Popen[bytes]:
    """Begin to run something of the package."""
    return subprocess.Popen(
        [python, "-c", code],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def main(folder: Path) -> None:
    """Make the environment and install everything into it."""
    print(
        f"setting up {folder}, once: about 700 MB are fetched, 400 of them Spark; how long that takes is up "
        "to your line",
        file=sys.stderr,
    )
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder.absolute() / "bin" / "python"
    install(python, "pip", "--upgrade", "pip>=24.1", "setuptools>=77")
    package = importable(folder.absolute())
    java = [str(python), "-m", "streamgauge.operators.java", "--install"]
    subprocess.run(java, env=package, check=True, stdout=subprocess.DEVNULL)
    install(python, "Spark", *_RAW, *first_requirements((ROOT / "pyproject.toml").read_text()))
    jars = fetching_jars(python, package)
    install(python, "all else", *_RAW, "-e", ".[dev]")
    shown = Shown("Kafka")
    modules = compiling(python, package)
    wait(jars, shown, "fetching Kafka's jars")
    wait(modules, shown, "compiling the package's modules")
    shown.done()


def wait(process: subprocess.Popen[bytes], shown: Shown, text: str) -> None:
    """Show how long a process takes."""
    while process.poll() is None:
        shown.update(text)
        time.sleep(0.1)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except subprocess.CalledProcessError as error:
        raise SystemExit(error.returncode) from None
