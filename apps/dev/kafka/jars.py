"""Kafka's jars, fetched once by the Ivy in PySpark's jars.

They are stored in the user's cache folder and verified against the SHA-256 sums in ``jars.sha256`` beside
this file. It honours ``HTTPS_PROXY``, ``HTTP_PROXY`` and ``NO_PROXY``; Java's settings in
``JAVA_TOOL_OPTIONS``; the mirror in ``~/.m2/settings.xml``; and a complete Ivy settings file named by
``STREAMGAUGE_IVY_SETTINGS`` or at ``~/.ivy2/ivysettings.xml``.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

from filelock import FileLock
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from ....operators.java import find_java
from ....operators.watching.console import TerminalConsole
from ....sketches.core.errors import StreamgaugeError
from ...environment.cache import cache_folder

KAFKA = "4.3.1"
_LOGGING = ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4")
"""The logging backend of Kafka's own distribution, which its jars don't list as a dependency."""

_IVY = """<ivy-module version="2.0">
  <info organisation="streamgauge" module="embedded-kafka"/>
  <dependencies>
    <dependency org="{}" name="{}" rev="{}" conf="default->default"/>
    <dependency org="{}" name="{}" rev="{}" conf="default->default"/>
  </dependencies>
</ivy-module>
""".format("org.apache.kafka", "kafka_2.13", KAFKA, *_LOGGING)
_SUMS = Path(__file__).with_name("jars.sha256")


class JarsError(StreamgaugeError, RuntimeError):
    """Kafka's jars could not be fetched, or have the wrong contents."""


def kafka_jars() -> Path:
    """Return the folder of Kafka's jars, complete and verified; fetch it with a progress bar if missing.

    Concurrent processes fetch only once. Raises `JarsError` (no network, a broken mirror, a jar with wrong
    contents) and `JavaError`.
    """
    folder = cache_folder() / "kafka" / f"jars-{KAFKA}"
    if not faults(folder):
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_suffix(".lock")):
        if faults(folder):
            _fetch(folder)
    return folder


def expected() -> dict[str, str]:
    """Return the SHA-256 sum of every jar, by file name."""
    lines = (line.split() for line in _SUMS.read_text().splitlines())
    return {name: digest for digest, name in lines}


def faults(folder: Path) -> list[str]:
    """Return what is wrong with a folder of jars, one line per jar; empty if it is complete and unaltered."""
    faults_ = []
    for name, digest in expected().items():
        try:
            with (folder / name).open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != digest:
                    faults_.append(f"{name} has other contents than it should")
        except OSError:
            faults_.append(f"{name} is missing")
    return faults_


def _fetch(folder: Path) -> None:
    """Fetch into a temporary folder, verify it, and move it into place atomically."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder.parent) as scratch:
        fetched = Path(scratch) / "jars"
        _run_ivy(Path(scratch), fetched)
        if wrong := faults(fetched):
            raise JarsError(
                f"Kafka's jars were fetched, but {wrong[0]} ({len(wrong)} of {len(expected())} are wrong); "
                "a mirror or proxy may be altering them, try again or choose another"
            )
        shutil.rmtree(folder, ignore_errors=True)
        fetched.replace(folder)


def _run_ivy(scratch: Path, into: Path) -> None:
    (scratch / "ivy.xml").write_text(_IVY)
    command = [
        str(find_java().program),
        *_proxy_options(os.environ),
        *("-cp", str(_ivy_jar()), "org.apache.ivy.Main"),
        *_settings_options(scratch),
        *("-ivy", str(scratch / "ivy.xml"), "-confs", "default", "-types", "jar", "bundle"),
        *("-cache", str(scratch / "cache")),
        *("-retrieve", str(into / "[artifact]-[revision](-[classifier]).[ext]")),
    ]
    total = len(expected())
    said: list[str] = []
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        console=TerminalConsole(stderr=True),
    )
    with (
        bar,
        subprocess.Popen(
            command,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as ivy,
    ):
        # A jar is resolved (slow, because its POM and its parents are read), then downloaded.
        task = bar.add_task(f"Fetching Kafka {KAFKA} (44 MB, once)", total=2 * total)
        try:
            assert ivy.stdout is not None
            for line in ivy.stdout:
                said.append(line.rstrip())
                if line.startswith("\tfound ") or "[SUCCESSFUL ]" in line:
                    bar.advance(task)
        except BaseException:
            ivy.kill()
            raise
    if ivy.returncode != 0:
        raise JarsError(_why(said))


def _why(said: list[str]) -> str:
    """Extract the relevant line of Ivy's output."""
    marks = ("UnknownHost", "Connect", "timed out", "SSL", "Server access", "unreachable")
    network = next((line.strip() for line in said if any(mark in line for mark in marks)), None)
    if network is not None:
        return (
            f"Kafka's jars could not be fetched, the Java registry was not reached ({network[:200]}). "
            "They are needed once: connect, name a proxy in HTTPS_PROXY or a mirror in ~/.m2/settings.xml, "
            f"or copy the folder {cache_folder() / 'kafka'} from a machine that has them"
        )
    missing = [line.strip(" \t:") for line in said if line.rstrip().endswith(": not found")]
    if missing:
        return (
            f"Kafka's jars could not be fetched, the Java registry lacks {missing[0][:200]} "
            f"({len(missing)} in all); a mirror in ~/.m2/settings.xml or an Ivy settings file may name a "
            "registry that doesn't have them"
        )
    words = [line.strip() for line in said if line.strip() and "USE VERBOSE" not in line]
    return f"Kafka's jars could not be fetched, Ivy failed: {words[-1][:300] if words else 'it said nothing'}"


def _ivy_jar() -> Path:
    spec = importlib.util.find_spec("pyspark")
    places = list(spec.submodule_search_locations or []) if spec is not None else []
    for place in places:
        if jars := sorted(Path(place, "jars").glob("ivy-2*.jar")):
            return jars[-1]
    if spec is None:
        raise JarsError(
            "Ivy, which fetches Kafka's jars, comes with PySpark, which is not installed: "
            "install streamgauge with its extra 'apps'"
        )
    raise JarsError(
        "Ivy, which fetches Kafka's jars, was not found among pyspark's jars; "
        "install the full `pyspark` package (`pyspark-client` and `pyspark-connect` lack it)"
    )


def _proxy_options(environ: os._Environ[str] | dict[str, str]) -> list[str]:
    """Convert the environment's proxies to Java properties."""
    options = []
    for scheme in ("http", "https"):
        name = f"{scheme}_proxy"
        address = environ.get(name) or environ.get(name.upper())
        if address:
            parts = urlsplit(address if "//" in address else f"//{address}")
            options.append(f"-D{scheme}.proxyHost={parts.hostname}")
            options.append(f"-D{scheme}.proxyPort={parts.port or (443 if parts.scheme == 'https' else 80)}")
    if direct := environ.get("no_proxy") or environ.get("NO_PROXY"):
        hosts = [h.strip() for h in direct.split(",") if h.strip()]
        patterns = [f"*{h}" if h.startswith(".") else h for h in hosts]
        options.append(f"-Dhttp.nonProxyHosts={'|'.join(patterns)}")
    return options


def _settings_options(scratch: Path) -> list[str]:
    """Return the user's Ivy settings, or Maven's mirror as Ivy settings, or none."""
    if named := os.environ.get("STREAMGAUGE_IVY_SETTINGS"):
        return ["-settings", named]
    usual = Path.home() / ".ivy2" / "ivysettings.xml"
    if usual.is_file():
        return ["-settings", str(usual)]
    if mirror := _maven_mirror(Path.home() / ".m2" / "settings.xml"):
        settings = scratch / "ivysettings.xml"
        settings.write_text(
            '<ivysettings><settings defaultResolver="mirror"/><resolvers>'
            f'<ibiblio name="mirror" m2compatible="true" root={quoteattr(mirror)}/>'
            "</resolvers></ivysettings>"
        )
        return ["-settings", str(settings)]
    return []


def _maven_mirror(settings: Path) -> str | None:
    """Return the address of the mirror that Maven would use in place of Maven Central."""
    try:
        root = ElementTree.parse(settings).getroot()
    except (OSError, ElementTree.ParseError):
        return None
    for mirror in root.iterfind(".//{*}mirrors/{*}mirror"):
        whose = {part.strip() for part in mirror.findtext("{*}mirrorOf", "").split(",")}
        address = mirror.findtext("{*}url", "").strip()
        if address and "!central" not in whose and whose & {"central", "*", "external:*"}:
            return address.rstrip("/") + "/"
    return None
