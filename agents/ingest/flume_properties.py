"""Flume's configurations, as far as agents here have what they name.

    a1.sources = r1
    a1.channels = c1
    a1.sinks = k1
    a1.sources.r1.type = seq
    a1.sources.r1.channels = c1
    a1.channels.c1.type = memory
    a1.sinks.k1.type = org.apache.flume.sink.kafka.KafkaSink
    a1.sinks.k1.kafka.topic = numbers
    a1.sinks.k1.kafka.bootstrap.servers = localhost:9092
    a1.sinks.k1.channel = c1

What a property asks for and isn't here is an error that names its line; tuning of Flume's own, such as batch
sizes and transaction capacities, is left out with a warning.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .agent_plan import AgentPlan
from .document import ConfigError, FieldLines, plan_of

log = logging.getLogger("streamgauge.ingest")


@dataclass(frozen=True)
class _Property:
    value: str
    line: int


def _text(value: str) -> str:
    return value


def _yes(value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise ValueError(f"must be true or false, got {value!r}")
    return value.lower() == "true"


@dataclass(frozen=True)
class _Kind:
    """Ours for one of Flume's types: our field for each property; those `ignored` change nothing here."""

    type: str
    fields: Mapping[str, tuple[str, Callable[[str], Any]]]
    ignored: Sequence[str] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)


_SOURCES = {
    "seq": _Kind("sequence", {"totalEvents": ("total", int), "batchSize": ("batch", int)}),
    "TAILDIR": _Kind(
        "tail",
        {},
        (
            "positionFile",
            "batchSize",
            "skipToEnd",
            "idleTimeout",
            "writePosInterval",
            "maxBatchCount",
            "fileHeader",
        ),
    ),
    "spooldir": _Kind(
        "spool",
        {"spoolDir": ("folder", _text), "fileSuffix": ("suffix", _text)},
        ("batchSize", "trackerDir", "inputCharset", "decodeErrorPolicy", "consumeOrder", "pollDelay"),
    ),
    "http": _Kind(
        "http", {"port": ("port", int), "bind": ("host", _text)}, ("handler",), {"format": "flume"}
    ),
    "syslogtcp": _Kind(
        "syslog",
        {"port": ("port", int), "host": ("host", _text)},
        ("eventSize", "keepFields"),
        {"protocol": "tcp"},
    ),
    "syslogudp": _Kind(
        "syslog", {"port": ("port", int), "host": ("host", _text)}, ("keepFields",), {"protocol": "udp"}
    ),
}
_CHANNELS = {
    "memory": _Kind(
        "memory",
        {"capacity": ("capacity", int)},
        ("transactionCapacity", "keep-alive", "byteCapacity", "byteCapacityBufferPercentage"),
    ),
    "file": _Kind(
        "file",
        {"dataDirs": ("folder", _text)},
        (
            "checkpointDir",
            "capacity",
            "transactionCapacity",
            "checkpointInterval",
            "maxFileSize",
            "keep-alive",
            "minimumRequiredSpace",
            "useDualCheckpoints",
            "backupCheckpointDir",
        ),
    ),
}
_SINKS = {
    "org.apache.flume.sink.kafka.KafkaSink": _Kind(
        "kafka",
        {
            "kafka.topic": ("topic", _text),
            "kafka.bootstrap.servers": ("bootstrap_servers", _text),
            # as Flume 1.6 had it
            "topic": ("topic", _text),
            "brokerList": ("bootstrap_servers", _text),
        },
        (
            *("kafka.flumeBatchSize", "flumeBatchSize", "batchSize", "kafka.producer.acks", "requiredAcks"),
            *("allowTopicOverride", "useFlumeEventFormat"),
        ),
    ),
    "logger": _Kind("console", {}, ("maxBytesToLog",)),
}
_INTERCEPTORS = {
    "timestamp": _Kind("timestamp", {"headerName": ("header", _text)}, ("preserveExisting",)),
    "host": _Kind("host", {"hostHeader": ("header", _text)}, ("preserveExisting", "useIP")),
    "static": _Kind("static", {}, ("preserveExisting",)),
    "regex_filter": _Kind("filter", {"regex": ("regex", _text), "excludeEvents": ("exclude", _yes)}),
}
_ALIASES = {
    "org.apache.flume.source.SequenceGeneratorSource": "seq",
    "org.apache.flume.source.taildir.TaildirSource": "TAILDIR",
    "org.apache.flume.source.SpoolDirectorySource": "spooldir",
    "org.apache.flume.source.http.HTTPSource": "http",
    "org.apache.flume.channel.MemoryChannel": "memory",
    "org.apache.flume.channel.file.FileChannel": "file",
    "org.apache.flume.sink.LoggerSink": "logger",
}


def parse_properties(text: str, source: str, folder: Path) -> AgentPlan:
    r"""The plan of Flume's properties; `source` is what errors call the file. Raises `ConfigError`.

    >>> text = "a1.sources = r1\na1.channels = c1\na1.sources.r1.type = seq\na1.sources.r1.channels = c2"
    >>> parse_properties(text, "a.properties", Path())
    Traceback (most recent call last):
    streamgauge.agents.ingest.document.ConfigError: a.properties, line 4: a1.sources.r1.channels: ...
    """
    return _Reading(_properties(text, source), source).plan(folder)


_LINE = re.compile(r"\s*([^\s=:]+)\s*[=:\s]\s*(.*?)\s*$")


def _properties(text: str, source: str) -> dict[str, _Property]:
    """Java's properties: comments, and lines that a backslash joins."""
    properties: dict[str, _Property] = {}
    joined, begin = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if not joined and (not line.strip() or line.lstrip()[0] in "#!"):
            continue
        begin = begin or number
        joined += line.lstrip() if joined else line
        if joined.endswith("\\"):
            joined = joined[:-1]
            continue
        match = _LINE.match(joined)
        if match is None:
            raise ConfigError(f"{source}, line {begin}: must be NAME = VALUE, got {joined.strip()!r}")
        # A backslash of Java's takes the next character as it is.
        properties[match[1]] = _Property(re.sub(r"\\(.)", r"\1", match[2]), begin)
        joined, begin = "", 0
    return properties


class _PropertyLines(FieldLines):
    """Of properties: our paths lead to the lines of theirs."""

    def __init__(self, source: str, lines: Mapping[tuple[str, ...], int]) -> None:
        super().__init__(source)
        self._lines = lines

    def line(self, path: Sequence[str]) -> int | None:
        """See `Places`."""
        steps = tuple(path)
        while steps and steps not in self._lines:
            steps = steps[:-1]
        return self._lines.get(steps)


class _Reading:
    def __init__(self, properties: Mapping[str, _Property], source: str) -> None:
        self._properties, self._source = properties, source
        agents = dict.fromkeys(name.partition(".")[0] for name in properties)
        if len(agents) != 1:
            raise ConfigError(
                f"{source}: must be of one agent, got {', '.join(agents) or 'none'}; write a file for each"
            )
        (self._agent,) = agents
        self._used: set[str] = set()
        self._lines: dict[tuple[str, ...], int] = {}

    def plan(self, folder: Path) -> AgentPlan:
        sources, channels, sinks = (self._names(role) for role in ("sources", "channels", "sinks"))
        document: dict[str, Any] = {"name": self._agent, "sources": {}, "channels": {}, "sinks": {}}
        for name in sources:
            table = self._part(
                "sources", name, _SOURCES, ("channels", "interceptors", "filegroups", "headers")
            )
            targets = self._value(f"sources.{name}.channels", channels).split()
            if len(targets) != 1:
                raise self._error(f"sources.{name}.channels", f"must be one channel, got {len(targets)}")
            table["channel"] = targets[0]
            table["interceptors"] = self._interceptors(name)
            if table["type"] == "tail":
                table |= self._taildir(name)
            document["sources"][name] = table
        for name in channels:
            document["channels"][name] = self._part("channels", name, _CHANNELS, ())
        for name in sinks:
            table = self._part("sinks", name, _SINKS, ("channel", "kafka.producer"))
            channel = self._value(f"sinks.{name}.channel", channels)
            if "sink" in document["channels"].get(channel, {}):
                raise self._error(f"sinks.{name}.channel", f"{channel} has another sink already")
            document["channels"].setdefault(channel, {})["sink"] = name
            if table["type"] == "kafka":
                table["config"] = self._producer(name)
                if "topic" not in table:
                    table["topic"] = "default-flume-topic"
            document["sinks"][name] = table
        self._refuse_unused()
        return plan_of(document, _PropertyLines(self._source, self._lines), self._agent, folder)

    def _names(self, role: str) -> list[str]:
        return self._get(role, "").split()

    def _part(self, role: str, name: str, kinds: Mapping[str, _Kind], other: Sequence[str]) -> dict[str, Any]:
        """A part's type and fields as ours."""
        begin = f"{role}.{name}"
        given = self._value(f"{begin}.type", None)
        kind = kinds.get(_ALIASES.get(given, given)) or next(
            (kind for known, kind in kinds.items() if known.lower() == given.lower()), None
        )
        if kind is None:
            known = ", ".join(sorted(kinds))
            raise self._error(f"{begin}.type", f"there is no {given!r} here; there are {known}")
        self._lines[(role, name)] = self._properties[f"{self._agent}.{begin}.type"].line
        table: dict[str, Any] = {"type": kind.type, **kind.fixed}
        for full in [full for full in self._properties if full.startswith(f"{self._agent}.{begin}.")]:
            key = full.removeprefix(f"{self._agent}.{begin}.")
            if key == "type" or any(key == one or key.startswith(f"{one}.") for one in other):
                continue
            if key in kind.fields:
                ours, convert = kind.fields[key]
                self._lines[(role, name, ours)] = self._properties[full].line
                table[ours] = self._converted(f"{begin}.{key}", convert)
            elif key in kind.ignored:
                self._get(f"{begin}.{key}", "")
                log.warning(
                    "%s, line %d: %s has no effect here", self._source, self._properties[full].line, full
                )
        return table

    def _interceptors(self, source: str) -> list[dict[str, Any]]:
        tables = []
        for at, name in enumerate(self._get(f"sources.{source}.interceptors", "").split()):
            role = f"sources.{source}.interceptors"
            table = self._part(role, name, _INTERCEPTORS, ("key", "value"))
            table["type"] = table["type"].removesuffix("$Builder")
            if table["type"] == "static":
                key = self._get(f"{role}.{name}.key", "key")
                table["headers"] = {key: self._get(f"{role}.{name}.value", "value")}
            self._lines[("sources", source, "interceptors", str(at))] = self._lines[(role, name)]
            tables.append(table)
        return tables

    def _taildir(self, source: str) -> dict[str, Any]:
        begin = f"sources.{source}.filegroups"
        files = []
        for group in self._value(begin, None).split():
            pattern = self._value(f"{begin}.{group}", None)
            folder, _, regex = pattern.rpartition("/")
            files.append(f"{folder}/{_glob(regex)}")
        skip = self._get(f"sources.{source}.skipToEnd", "false")
        return {"files": files, "start": "end" if skip == "true" else "beginning"}

    def _producer(self, sink: str) -> dict[str, str]:
        begin = f"{self._agent}.sinks.{sink}.kafka.producer."
        config = {}
        for full, given in self._properties.items():
            if full.startswith(begin):
                self._used.add(full)
                name = full.removeprefix(begin)
                if name not in ("acks", "key.serializer", "value.serializer"):
                    config[name] = given.value
                    self._lines[("sinks", sink, "config")] = given.line
        return config

    def _get(self, name: str, otherwise: str) -> str:
        full = f"{self._agent}.{name}"
        self._used.add(full)
        return self._properties[full].value if full in self._properties else otherwise

    def _value(self, name: str, allowed: Sequence[str] | None) -> str:
        full = f"{self._agent}.{name}"
        if full not in self._properties:
            raise ConfigError(f"{self._source}: {full} is missing")
        value = self._get(name, "")
        for one in value.split():
            if allowed is not None and one not in allowed:
                raise self._error(name, f"must be one of {', '.join(allowed) or 'none'}, got {one!r}")
        return value

    def _converted(self, name: str, convert: Callable[[str], Any]) -> Any:
        value = self._get(name, "")
        try:
            return convert(value)
        except ValueError as error:
            text = str(error) if str(error).startswith("must") else f"must be a number, got {value!r}"
            raise self._error(name, text) from None

    def _error(self, name: str, text: str) -> ConfigError:
        full = f"{self._agent}.{name}"
        return ConfigError(f"{self._source}, line {self._properties[full].line}: {full}: {text}")

    def _refuse_unused(self) -> None:
        for full, given in self._properties.items():
            if full not in self._used:
                raise ConfigError(f"{self._source}, line {given.line}: {full} means nothing here")


def _glob(regex: str) -> str:
    """A file name's regular expression as a pattern, as far as it has one.

    >>> _glob(r"access\\.log.*"), _glob(".*log.*"), _glob("app.log")
    ('access.log*', '*log*', 'app.log')
    """
    pattern = re.sub(r"\.[*+]", "*", regex).replace("\\.", ".")
    if re.search(r"[\\()|^$+{}]", pattern):
        raise ConfigError(
            f"the file group's regular expression {regex!r} can't be a pattern; write .* and names"
        )
    return pattern
