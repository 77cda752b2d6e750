"""Lines a second from a file into Kafka: an agent, exactly once, beside rsyslog and Flume.

A file of lines of 200 bytes, broker on the same machine. Each is measured by its own process's processor
time, a core's lines a second, from its start to the last line's arrival, with start-up taken off by a run
over one line; the sides take turns. rsyslog is Debian's: imfile to omkafka, at its defaults but for larger
batches and lz4, at least once. Flume 1.11 is a TAILDIR source, its file channel (or its memory channel) and
KafkaSink. Required: 500,000 lines a second of a core, at least rsyslog's, and five times those of Flume's
file channel.
"""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from confluent_kafka import Consumer, TopicPartition

from bench.java_peers import jars
from streamgauge.apps.dev.kafka.broker import EmbeddedKafka
from streamgauge.operators.java import find_java

LINES = int(os.environ.get("LINES", 2_000_000))
FLUME_LINES = LINES // 10
SIZE = 200
ROUNDS = 3
SECONDS = 600.0
FLUME = [
    "org.apache.flume:flume-ng-node:1.11.0",
    "org.apache.flume:flume-ng-sdk:1.11.0",
    "org.apache.flume.flume-ng-channels:flume-file-channel:1.11.0",
    "org.apache.flume.flume-ng-sources:flume-taildir-source:1.11.0",
    "org.apache.flume.flume-ng-sinks:flume-ng-kafka-sink:1.11.0",
    "org.slf4j:slf4j-simple:1.7.36",
]
DEBIAN = ["rsyslog", "rsyslog-kafka", "librdkafka1", "libestr0", "libfastjson4", "liblognorm5"]

Command = tuple[Sequence[str], dict[str, str]]
Tool = Callable[[Path, str, str, Path], Command]


def lines_of(path: Path, count: int) -> None:
    """Lines of an access log's kind: words from a small vocabulary, and numbers."""
    rng = np.random.default_rng(1)
    words = [f"/page/{number:04d}" for number in rng.integers(0, 9_999, 500)]
    with path.open("wb") as file:
        for start in range(0, count, 10_000):
            picks, numbers = rng.integers(0, 500, 10_000), rng.integers(0, 10**9, 10_000)
            text = "".join(
                f"10.0.{number % 256}.{number // 7 % 256} - - [17/May/2026:10:05:03 +0000] "
                f'"GET {words[pick]}?id={number} HTTP/1.1" 200 {number % 50_000} "-" '.ljust(SIZE - 1, "x")
                + "\n"
                for pick, number in zip(picks.tolist(), numbers.tolist())
            )
            file.write(text.encode()[: SIZE * min(10_000, count - start)])


def ours(log: Path, bootstrap: str, topic: str, folder: Path) -> Command:
    code = "from streamgauge.apps.cli.program import main; main()"
    options = ["ingest", "tail", str(log), "--topic", topic, "--name", topic]
    options += ["--bootstrap-servers", bootstrap]
    return [sys.executable, "-c", code, *options], {}


def rsyslog(log: Path, bootstrap: str, topic: str, folder: Path) -> Command:
    root = debian()
    libraries = root / "usr/lib/x86_64-linux-gnu"
    config = folder / "rsyslog.conf"
    config.write_text(
        f"""
        global(workDirectory="{folder}" maxMessageSize="64k")
        main_queue(queue.type="LinkedList" queue.size="200000" queue.dequeueBatchSize="4096")
        module(load="imfile" mode="inotify")
        module(load="omkafka")
        input(type="imfile" file="{log}" tag="t" readMode="0" addMetadata="off")
        template(name="plain" type="string" string="%msg%")
        action(type="omkafka" topic="{topic}" broker=["{bootstrap}"] template="plain"
               confParam=["compression.codec=lz4", "queue.buffering.max.messages=1000000", "linger.ms=20"])
        """
    )
    command = [str(root / "usr/sbin/rsyslogd"), "-n", "-f", str(config), "-i", str(folder / "pid")]
    env = {"LD_LIBRARY_PATH": f"{libraries}:{root}/lib/x86_64-linux-gnu"}
    return [*command, "-M", str(libraries / "rsyslog")], env


def flume(channel: str) -> Tool:
    def made(log: Path, bootstrap: str, topic: str, folder: Path) -> Command:
        config = folder / "flume.properties"
        config.write_text(
            f"""
a.sources = s
a.channels = c
a.sinks = k
a.sources.s.type = TAILDIR
a.sources.s.channels = c
a.sources.s.positionFile = {folder}/positions.json
a.sources.s.filegroups = f
a.sources.s.filegroups.f = {log}
a.sources.s.batchSize = 1000
a.channels.c.type = {channel}
a.channels.c.capacity = 100000
a.channels.c.transactionCapacity = 10000
{f"a.channels.c.dataDirs = {folder}/data" if channel == "file" else ""}
{f"a.channels.c.checkpointDir = {folder}/checkpoint" if channel == "file" else ""}
a.sinks.k.type = org.apache.flume.sink.kafka.KafkaSink
a.sinks.k.channel = c
a.sinks.k.kafka.topic = {topic}
a.sinks.k.kafka.bootstrap.servers = {bootstrap}
a.sinks.k.kafka.flumeBatchSize = 1000
a.sinks.k.kafka.producer.compression.type = lz4
"""
        )
        java = [str(find_java().program), "-Xmx1g", "-cp", f"{jars(FLUME)}/*"]
        main = ["org.apache.flume.node.Application", "--no-reload-conf", "-n", "a", "-f", str(config)]
        return [*java, *main], {}

    return made


def debian() -> Path:
    """The peer's Debian packages, unpacked here. Raises `RuntimeError` where there are none."""
    root = Path(sys.prefix) / "bench-rsyslog"
    if (root / "usr/sbin/rsyslogd").exists():
        return root
    if not shutil.which("apt-get"):
        raise RuntimeError("rsyslog comes from Debian, and there is no apt-get here")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["apt-get", "download", *DEBIAN], cwd=folder, check=True, capture_output=True)
        for package in Path(folder).glob("*.deb"):
            subprocess.run(["dpkg", "-x", str(package), str(root)], check=True)
    return root


def cpu_seconds(tool: Tool, log: Path, broker: EmbeddedKafka, count: int) -> float:
    """The processor time of a run over a file, from its start to the last line's arrival."""
    topic = f"lines-{time.monotonic_ns()}"
    broker.create_topic(topic, 1)
    watcher = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": topic, "log_level": 0})
    with tempfile.TemporaryDirectory() as folder:
        command, env = tool(log, broker.bootstrap_servers, topic, Path(folder))
        with (Path(folder) / "log").open("wb") as said:
            process = subprocess.Popen(
                command, env={**os.environ, **env}, cwd=folder, stdout=said, stderr=subprocess.STDOUT
            )
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            deadline = time.monotonic() + SECONDS
            try:
                while watcher.get_watermark_offsets(TopicPartition(topic, 0), 10)[1] < count:
                    if process.poll() is not None or time.monotonic() > deadline:
                        raise RuntimeError(f"{command[0]}: {(Path(folder) / 'log').read_text()[-2_000:]}")
                    time.sleep(0.02)
            finally:
                process.terminate()
                process.wait()
                watcher.close()
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> list[dict[str, Any]]:
    tools: dict[str, tuple[Tool, int]] = {
        "ours": (ours, LINES),
        "rsyslog": (rsyslog, LINES),
        "Flume, file channel": (flume("file"), FLUME_LINES),
        "Flume, memory channel": (flume("memory"), FLUME_LINES),
    }
    rates: dict[str, list[float]] = {name: [] for name in tools}
    why: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder, EmbeddedKafka() as broker:
        files = {count: Path(folder) / f"{count}.log" for count in (1, LINES, FLUME_LINES)}
        for count, path in files.items():
            lines_of(path, count)
        for _ in range(ROUNDS):
            for name, (tool, count) in tools.items():
                if name in why:
                    continue
                try:
                    whole = cpu_seconds(tool, files[count], broker, count)
                    rates[name].append(count / (whole - cpu_seconds(tool, files[1], broker, 1)))
                except (RuntimeError, subprocess.CalledProcessError) as error:
                    why[name] = str(error)
    mine = statistics.median(rates["ours"])
    rows = [
        {
            "claim": "lines of 200 bytes a second and core, a file into Kafka exactly once",
            "ours": f"{mine / 1e3:,.0f} k/s",
            "peer": "",
            "ratio": "",
            "target": "≥ 500 k/s",
        }
    ]
    for name in list(tools)[1:]:
        peer = statistics.median(rates[name]) if rates[name] else None
        rows.append(
            {
                "claim": f"the same beside {name}",
                "ours": f"{mine / 1e3:,.0f} k/s",
                "peer": f"{peer / 1e3:,.0f} k/s" if peer else f"none: {why[name][:200]}",
                "ratio": f"{mine / peer:.1f} ×" if peer else "",
                "target": {"rsyslog": "≥ 1", "Flume, file channel": "≥ 5"}.get(name, "report"),
            }
        )
    return rows
