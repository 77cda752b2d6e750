"""An agent's configuration as TOML, with errors that name the line and the field.

name = "web-1"

[sources.access]
type = "tail"
files = ["/var/log/nginx/access.log*"]
sink = "kafka"

[sinks.kafka]
type = "kafka"
topic = "access"
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path

from .agent_plan import AgentPlan
from .document import ConfigError, FieldLines, plan_of


def read_config(path: Path, name: str, folder: Path) -> AgentPlan:
    """Read a plan from a TOML file.

    `name` and `folder` are defaults for files that don't set them. Raises `ConfigError`, and `OSError` for a
    file that can't be read.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: must be UTF-8 text, got a byte {error.object[error.start]:#x}") from None
    return parse_config(text, str(path), name, folder)


def parse_config(text: str, source: str, name: str, folder: Path) -> AgentPlan:
    """Parse a plan from TOML text; `source` names the text in errors.

    >>> text = '''[sources.access]
    ... type = "tail"
    ... files = ["access.log"]
    ... [sinks.kafka]
    ... type = "kafka"
    ... topic = 7'''
    >>> parse_config(text, "agent.toml", "web-1", Path())
    Traceback (most recent call last):
    streamgauge.agents.ingest.document.ConfigError: agent.toml, line 6: sinks.kafka: topic: ...
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{source}: not TOML: {error}") from None
    return plan_of(document, TomlLines(text, source), name, folder)


_HEADER = re.compile(r"\s*\[(\[?)\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")
_STEP = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")


class TomlLines(FieldLines):
    """Line numbers of a TOML text, which tomllib doesn't report."""

    def __init__(self, text: str, source: str) -> None:
        super().__init__(source)
        self._lines: dict[tuple[str, ...], int] = {}
        table: tuple[str, ...] = ()
        counted: dict[tuple[str, ...], int] = {}
        for number, line in enumerate(text.splitlines(), 1):
            if header := _HEADER.match(line):
                table = _steps(header[2])
                if header[1]:
                    at = counted[table] = counted.get(table, -1) + 1
                    self._lines.setdefault(table, number)
                    table = (*table, str(at))
                self._lines.setdefault(table, number)
            elif key := _KEY.match(line):
                self._lines.setdefault((*table, *_steps(key[1])), number)

    def line(self, path: Sequence[str]) -> int | None:
        """See `Places`."""
        steps = tuple(path)
        while steps and steps not in self._lines:
            steps = steps[:-1]
        return self._lines.get(steps)


def _steps(dotted: str) -> tuple[str, ...]:
    return tuple(step.strip("\"'") for step in _STEP.findall(dotted))
