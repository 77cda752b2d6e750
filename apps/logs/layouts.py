"""Layouts of programs' log lines: the places of time, level, program and message.

A layout is a Rust regular expression with named groups, anchored at the beginning. The first layout that
matches a line is used, so more specific ones come first. `read_layouts` reads further ones from a file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

GROUPS = ("time", "epoch", "host", "program", "process", "level", "client", "user", "message")
"""The groups with a meaning; others are only matched."""

_LEVEL = (
    r"(?P<level>(?i:trace|verbose|debug|info|information|notice|warn|warning|error|err|severe|fatal|critical"
    r"|crit|alert|emerg|emergency|panic))"
)
_TIME = (
    r"(?P<time>\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d))?)"
)
_CTIME = r"(?P<time>[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]?\d \d\d:\d\d:\d\d(?:\.\d+)? \d{4})"
_LOGGER = r"(?P<program>[\w.$/-]+)"
_MESSAGE = r"(?P<message>.*)$"
TAI64N = ":tai64n"
"""The time format of daemontools: seconds since 1970 and nanoseconds in hexadecimal."""
ISO = ""
"""The time format ISO 8601, with a blank or a T, a comma or a point."""


@dataclass(frozen=True)
class LineLayout:
    """A layout of lines: its name, its expression, and how its time is written.

    `time` is a strftime format, or empty for ISO 8601; it isn't needed if a group ``epoch`` has a number
    since 1970, which is in s, ms, µs or ns by its size. A time without a year is read as in syslog. `program`
    is the program that writes such lines, if they don't contain it.
    """

    name: str
    pattern: str
    time: str = ISO
    program: str = ""

    @property
    def expression(self) -> str:
        """The regular expression, in which a dot also matches line endings."""
        return f"(?s){self.pattern}"

    @property
    def has_year(self) -> bool:
        """Whether its times contain the year."""
        return self.time in (ISO, TAI64N) or any(
            code in self.time for code in ("%Y", "%y", "%F", "%s", "%D", "%G", "%c", "%+")
        )


UNSURE = (
    LineLayout("Exim's main log", rf"^{_TIME} (?:\S+ exim\[\d+\]: )?(?P<message>(?:\[\d+\] )?.*)$"),
    LineLayout("a time at the beginning", rf"^\[?{_TIME}\]?[,:]? +{_MESSAGE}"),
    LineLayout(
        "a time of C at the beginning", rf"^\[?{_CTIME}\]?[,:]? +{_MESSAGE}", "%a %b %e %H:%M:%S%.f %Y"
    ),
)

"""Layouts of lines that may also belong to another format."""

LAYOUTS = (
    LineLayout(
        "Apache 2.4's error log",
        rf"^\[{_CTIME}\] \[(?:[\w-]*:)?(?P<level>\w+)\] \[pid (?P<process>\d+)(?::tid \d+)?\]"
        rf"(?: \[(?:remote|client) \[?(?P<client>[^\]\s]+?)\]?:\d+\])? {_MESSAGE}",
        "%a %b %e %H:%M:%S%.f %Y",
        "apache",
    ),
    LineLayout(
        "Apache's error log",
        rf"^\[{_CTIME}\] \[(?P<level>\w+)\](?: \[client (?P<client>[^\]\s]+)\])? {_MESSAGE}",
        "%a %b %e %H:%M:%S%.f %Y",
        "apache",
    ),
    LineLayout(
        "nginx's error log",
        rf"^(?P<time>\d{{4}}/\d\d/\d\d \d\d:\d\d:\d\d) \[(?P<level>\w+)\] (?P<process>\d+)#\d+: {_MESSAGE}",
        program="nginx",
    ),
    LineLayout(
        "Android's logcat",
        r"^(?P<time>\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) +(?P<process>\d+) +\d+ (?P<level>[VDIWEFA]) "
        rf"(?P<program>[^:]*?) *: {_MESSAGE}",
        "%m-%d %H:%M:%S%.f",
    ),
    LineLayout(
        "Blue Gene",
        r"^\S+ (?P<epoch>\d{9,10}) \d{4}\.\d\d\.\d\d (?P<host>\S+) \d{4}-\d\d-\d\d-[\d.]+ \S+ \w+ "
        r"(?P<program>\w+) (?P<level>\w+)(?: (?P<message>.*))?$",
    ),
    LineLayout(
        "syslog behind an epoch",
        r"^\S+ (?P<epoch>\d{9,10}) \d{4}\.\d\d\.\d\d (?P<host>\S+) [A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d \S+ "
        rf"(?:(?P<program>[^\s\[\]:]+)(?:\[(?P<process>[^\]]*)\])?: ?)?{_MESSAGE}",
    ),
    LineLayout(
        "HPC clusters",
        r"^\d+ (?P<host>\S+) (?P<program>\S+) \S+ (?P<epoch>\d{9,10}) -?\d+(?: (?P<message>.*))?$",
    ),
    LineLayout(
        "HDFS",
        rf"^(?P<time>\d{{6}} \d{{6}}) (?P<process>\d+) {_LEVEL} {_LOGGER}: {_MESSAGE}",
        "%y%m%d %H%M%S",
    ),
    LineLayout(
        "Spark",
        rf"^(?P<time>\d\d/\d\d/\d\d \d\d:\d\d:\d\d) {_LEVEL} {_LOGGER}: {_MESSAGE}",
        "%y/%m/%d %H:%M:%S",
    ),
    LineLayout(
        "HealthApp",
        rf"^(?P<time>\d{{8}}-\d{{1,2}}:\d{{1,2}}:\d{{1,2}}:\d{{1,3}})\|(?P<program>[^|]*)\|(?P<process>\d+)\|{_MESSAGE}",
        "%Y%m%d-%H:%M:%S:ms",
    ),
    LineLayout(
        "Proxifier",
        rf"^\[(?P<time>\d\d\.\d\d \d\d:\d\d:\d\d)\] (?P<program>\S+)(?: \*\d+)? - {_MESSAGE}",
        "%m.%d %H:%M:%S",
    ),
    LineLayout(
        "Kubernetes' klog",
        r"^(?P<level>[IWEF])(?P<time>\d{4} \d\d:\d\d:\d\d\.\d+) +(?P<process>\d+) "
        rf"(?P<program>[^\]]+)\] {_MESSAGE}",
        "%m%d %H:%M:%S%.f",
    ),
    LineLayout(
        "OpenStack",
        rf"^(?:\S+ )?{_TIME} (?P<process>\d+) {_LEVEL} (?P<program>[\w.]+) (?:\[[^\]]*\] )?{_MESSAGE}",
    ),
    LineLayout("Python's logging", rf"^{_TIME} - {_LOGGER} - {_LEVEL} - {_MESSAGE}"),
    LineLayout("Zookeeper", rf"^{_TIME} - {_LEVEL} +\[.*?(?P<program>[\w$.]+)@\d+\] - {_MESSAGE}"),
    LineLayout("log4j", rf"^{_TIME},? \[?{_LEVEL}\]? +\[.*?\] {_LOGGER}(?: ?:| -) {_MESSAGE}"),
    LineLayout(
        "logback",
        rf"^{_TIME},? \[.*?\] +{_LEVEL} +{_LOGGER}(?:\[[^\]]*\])?(?: \[[^\]]*\])*(?: ?:| -) {_MESSAGE}",
    ),
    LineLayout(
        "Spring Boot",
        rf"^{_TIME} +{_LEVEL} (?:\[[^\]]*\] )?(?P<process>\d+) --- (?:\[[^\]]*\] ?)+"
        rf"(?P<program>\S+) +: {_MESSAGE}",
    ),
    LineLayout(
        "Windows' servicing log", rf"^{_TIME}, (?P<level>[A-Z]\w+) +(?P<program>[A-Z]\w*) +{_MESSAGE}"
    ),
    LineLayout(
        "PostgreSQL with its client",
        rf"^{_TIME}(?: [A-Z]{{3,4}})? \[(?P<process>\d+)\] (?P<client>[0-9A-Fa-f.:]+)(?:\(\d+\))? "
        rf"(?P<user>[^\s@]*)@\S+ (?P<level>[A-Z]+\d?): +{_MESSAGE}",
        program="postgres",
    ),
    LineLayout(
        "PostgreSQL behind its client",
        rf"^(?P<client>[0-9A-Fa-f.:]+) {_TIME}(?: [A-Z]{{3,4}})? \[(?P<process>\d+)\] "
        rf"(?P<user>[^\s@]*)@\S+ (?P<level>[A-Z]+\d?): +{_MESSAGE}",
        program="postgres",
    ),
    LineLayout(
        "PostgreSQL on RDS",
        rf"^{_TIME}(?: [A-Z]{{3,4}})?:(?P<client>[^:()]*)(?:\(\d+\))?:(?P<user>[^\s@:]*)@[^:]*:"
        rf"\[(?P<process>\d+)\]:(?P<level>[A-Z]+\d?): +{_MESSAGE}",
        program="postgres",
    ),
    LineLayout(
        "PostgreSQL",
        rf"^{_TIME}(?: [A-Z]{{3,4}})? \[(?P<process>\d+)\] (?:(?P<user>[^\s@]*)@\S+ )?"
        rf"(?P<level>[A-Z]+\d?): +{_MESSAGE}",
        program="postgres",
    ),
    LineLayout(
        "MySQL",
        r"^(?P<time>\d{4}-\d\d-\d\d[T ] ?\d{1,2}:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?) "
        rf"(?P<process>\d+) \[(?P<level>\w+)\] (?:\[MY-\d+\] \[\w+\] )?{_MESSAGE}",
        program="mysqld",
    ),
    LineLayout("MySQL's general log", rf"^{_TIME}\s+(?P<process>\d+) Connect\s+{_MESSAGE}", program="mysqld"),
    LineLayout(
        "MySQL before 5.6",
        r"^(?P<time>\d{6} +\d{1,2}:\d\d:\d\d) (?P<message>\[(?P<level>Note|Warning|ERROR)\] .*)$",
        "%y%m%d %k:%M:%S",
        "mysqld",
    ),
    LineLayout(
        "ProFTPD",
        rf"^{_TIME} (?P<host>\S+) (?P<program>proftpd)\[(?P<process>\d+)\]:? {_MESSAGE}",
    ),
    LineLayout(
        "Exim by its daemon", rf"^{_TIME} (?P<host>\S+) (?P<program>exim)\[(?P<process>\d+)\]: {_MESSAGE}"
    ),
    LineLayout(
        "daemontools' multilog",
        rf"^@(?P<time>[0-9a-f]{{24}}) (?:(?P<program>[\w-]+)(?:\[(?P<process>\d+)\])?: )?{_MESSAGE}",
        TAI64N,
    ),
    LineLayout("Celery", rf"^\[{_TIME}: (?P<level>[A-Z]+)/(?P<program>[^\]]+)\] {_MESSAGE}"),
    LineLayout(
        "Gunicorn", rf"^\[{_TIME}\] \[(?P<process>\d+)\] \[(?P<level>[A-Z]+)\] {_MESSAGE}", program="gunicorn"
    ),
    LineLayout("vsftpd", rf"^{_CTIME} (?P<message>\[pid \d+\] .*)$", "%a %b %e %H:%M:%S%.f %Y", "vsftpd"),
    LineLayout(
        "a level behind the time",
        rf"^\[?{_TIME}\]?,? (?:\[\d+\] )?[\[<(]?{_LEVEL}[\]>)]?:? +(?:\[?{_LOGGER}\]?(?: ?:| -) )?{_MESSAGE}",
        program="-",
    ),
    *UNSURE,
)


def read_layouts(path: str | Path) -> tuple[LineLayout, ...]:
    """Read user-defined layouts from a TOML file with a ``[[layout]]`` for each.

    Each has a `pattern` with named groups, including ``(?<time>…)``, and may have `name`, `time` (a strftime
    format) and `program`. Raises `ValueError`, naming the file and what is wrong, and `OSError`.

    >>> from tempfile import NamedTemporaryFile
    >>> with NamedTemporaryFile("w", suffix=".toml") as file:
    ...     _ = file.write("[[layout]]\\npattern = '^(?<time>[^;]+);(?<message>.*)'\\ntime = '%Y.%m.%d'\\n")
    ...     file.flush()
    ...     read_layouts(file.name)[0].has_year
    True
    """
    try:
        document = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path}: not TOML: {error}") from None
    listed = document.get("layout")
    if document.keys() != {"layout"} or not isinstance(listed, list) or not listed:
        raise ValueError(f"{path}: write each layout as [[layout]]")
    return tuple(_layout(entry, f"{path}, layout {number}") for number, entry in enumerate(listed, 1))


def _layout(entry: dict[str, Any], where: str) -> LineLayout:
    known = ("name", "pattern", "time", "program")
    if unknown := [name for name in entry if name not in known]:
        raise ValueError(f"{where}: {unknown[0]!r} is not known; it has {', '.join(known)}")
    if wrong := [name for name, value in entry.items() if not isinstance(value, str)]:
        raise ValueError(f"{where}: {wrong[0]} must be text, got {entry[wrong[0]]!r}")
    if not entry.get("pattern"):
        raise ValueError(f"{where}: it needs a pattern, with groups such as (?<time>…)")
    return own_layout(
        entry["pattern"], entry.get("time", ISO), where, entry.get("name"), entry.get("program", "")
    )


def own_layout(pattern: str, time: str, where: str, name: str | None = None, program: str = "") -> LineLayout:
    """Make a user-defined layout. Raises `ValueError`, naming its origin, if it is invalid."""
    try:
        groups = pl.Series([""]).str.extract_groups(pattern).dtype
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"{where}: {pattern!r} is not a regular expression of Rust: {error}") from None
    named = [field.name for field in groups.fields if not field.name.isdigit()]  # type: ignore[attr-defined]
    if not {"time", "epoch"} & set(named):
        raise ValueError(
            f"{where}: the pattern needs a group (?<time>…) or (?<epoch>…); it has {_listed(named)}"
        )
    if unknown := [group for group in named if group not in GROUPS]:
        raise ValueError(f"{where}: the group {unknown[0]!r} is not known; there are {', '.join(GROUPS)}")
    return LineLayout(name or where, pattern, time, program)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
