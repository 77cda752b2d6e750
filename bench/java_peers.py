"""Peers in Java: their jars, fetched once through Ivy, and programs of ``bench/peers`` that run on them."""

from __future__ import annotations

import atexit
import hashlib
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from streamgauge.apps.dev.kafka.jars import KAFKA, _ivy_jar, _proxy_options, _settings_options
from streamgauge.operators.java import find_java

PEERS = Path(__file__).parent / "peers"
FLINK = "2.1.0"
SKETCHES = "org.apache.datasketches:datasketches-java:6.2.0"
LOGGING = "org.slf4j:slf4j-nop:1.7.36"
KAFKA_STREAMS = [f"org.apache.kafka:kafka-streams:{KAFKA}", SKETCHES, LOGGING]
FLINK_DATASTREAM = [
    f"org.apache.flink:flink-streaming-java:{FLINK}",
    f"org.apache.flink:flink-clients:{FLINK}",
    f"org.apache.flink:flink-connector-base:{FLINK}",
    f"org.apache.flink:flink-json:{FLINK}",
    "org.apache.flink:flink-connector-kafka:4.0.1-2.0",
    SKETCHES,
    LOGGING,
]
FLINK_FORMATS = [*FLINK_DATASTREAM, "org.apache.avro:avro:1.12.1", "com.google.protobuf:protobuf-java:4.34.2"]


def jars(artifacts: list[str]) -> Path:
    """The folder, in this environment, of artifacts (``organisation:name:version``) and all they need.

    Ivy compares each jar with the registry's sum. Raises `RuntimeError` if the registry isn't reached, or
    lacks one.
    """
    lines = "".join(
        '<dependency org="{}" name="{}" rev="{}" conf="default->default"/>'.format(*artifact.split(":"))
        for artifact in artifacts
    )
    module = (
        '<ivy-module version="2.0"><info organisation="streamgauge" module="bench"/>'
        f"<dependencies>{lines}</dependencies></ivy-module>"
    )
    folder = Path(sys.prefix) / "bench-jars" / hashlib.sha256(module.encode()).hexdigest()[:12]
    if folder.is_dir():
        return folder
    folder.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder.parent) as scratch:
        (Path(scratch) / "ivy.xml").write_text(module)
        command = [
            str(find_java().program),
            *_proxy_options(os.environ),
            *("-cp", str(_ivy_jar()), "org.apache.ivy.Main"),
            *_settings_options(Path(scratch)),
            *("-ivy", f"{scratch}/ivy.xml", "-confs", "default", "-types", "jar", "bundle"),
            *("-cache", f"{scratch}/cache"),
            *("-retrieve", f"{scratch}/jars/[artifact]-[revision](-[classifier]).[ext]"),
        ]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            said = "\n".join((done.stdout + done.stderr).splitlines()[-12:])
            raise RuntimeError(
                f"the jars of {artifacts[0]} could not be fetched: connect once, or name a mirror as "
                f"apps/dev/kafka/jars.py says. Ivy said:\n{said}"
            )
        (Path(scratch) / "jars").replace(folder)
    return folder


def run(program: str, artifacts: list[str], *arguments: object, options: tuple[str, ...] = ()) -> str:
    """The last line that a program of ``bench/peers`` prints.

    `options` are the Java machine's. Raises `RuntimeError` with what it said, if it can't be compiled or
    fails.
    """
    return _checked(command(program, artifacts, *arguments, options=options)).splitlines()[-1]


def command(
    program: str, artifacts: list[str], *arguments: object, options: tuple[str, ...] = ()
) -> list[str]:
    """The command that runs a program of ``bench/peers``, compiled with the sources that it uses.

    Raises `RuntimeError` if it can't be compiled.
    """
    classes = os.pathsep.join(map(str, jars(artifacts).glob("*.jar")))
    folder = _compiled(program, classes)
    machine = [str(find_java().program), f"-Djava.io.tmpdir={folder}", *options]
    return [*machine, "-cp", f"{folder}{os.pathsep}{classes}", program, *map(str, arguments)]


@cache
def _compiled(program: str, classes: str) -> str:
    """The folder of a program's classes, until this process ends."""
    scratch = tempfile.TemporaryDirectory()
    atexit.register(scratch.cleanup)
    compiler = [str(find_java().program), "-m", "jdk.compiler/com.sun.tools.javac.Main"]
    sources = ["-sourcepath", str(PEERS), str(PEERS / f"{program}.java")]
    _checked([*compiler, "-nowarn", "-d", scratch.name, "-cp", classes, *sources])
    return scratch.name


def _checked(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:3])} … failed:\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout
