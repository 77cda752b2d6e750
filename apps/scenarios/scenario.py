"""Scenarios: a stream, its rules, messages in which something happens once, and the expected results."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import polars as pl

from ...operators.definition.stream import Stream
from ...operators.rules.rule import Rule
from ...operators.rules.toml_rules import rules_of

BEGIN = datetime(2026, 6, 1, 8)
"""The time of the first message of each scenario (UTC)."""

Row = dict[str, Any]


def at(minutes: float) -> datetime:
    """Return the time this many minutes after the beginning."""
    return BEGIN + timedelta(minutes=minutes)


@dataclass(frozen=True)
class Scenario:
    """One question about a stream, and how it is answered.

    name, field, question
        What it is called on the command line, the field it comes from, and what people ask.
    schema
        The columns of the messages; `at` is their time.
    stream
        The definition, a function from a stream of these messages. Its source is shown to the user.
    messages
        Messages that are made up, in the order of their times, in which the scenario happens once.
    rules
        A rules file (TOML), empty if the answer is a window's.
    readings
        Whether rules judge each reading instead of windows.
    alerts
        What must come: the state and the key of each alert.
    commands
        What must be sent, and to which topic.
    answer, answers
        For a scenario without rules: what is taken from the closed windows, and what it must be.
    """

    name: str
    field: str
    question: str
    schema: Mapping[str, Any]
    stream: Callable[[Stream], Stream]
    messages: Callable[[], Iterator[Row]]
    rules: str = ""
    readings: bool = False
    alerts: Sequence[tuple[str, Any]] = ()
    commands: Sequence[tuple[str, Any]] = ()
    answer: Callable[[pl.DataFrame], Any] | None = None
    answers: Any = None

    @property
    def definition(self) -> str:
        """The source text of the stream's definition, without the rest."""
        source = inspect.getsource(self.stream)
        return source[source.index("\ndef ") + 1 :].rstrip()

    def rule_list(self) -> list[Rule]:
        """The rules of the rules file."""
        return rules_of(textwrap.dedent(self.rules), self.name)

    def rows(self) -> pl.DataFrame:
        """All messages as a data frame."""
        return pl.DataFrame(list(self.messages()), schema={**self.schema})


SCENARIOS: dict[str, Scenario] = {}
"""All scenarios by name, in the order in which their modules define them."""


def scenario(
    field: str, schema: Mapping[str, Any], messages: Callable[[], Iterator[Row]], **rest: Any
) -> Callable[[Callable[[Stream], Stream]], Callable[[Stream], Stream]]:
    """Make a scenario of the decorated function; its name is the function's, its question the docstring."""

    def register(stream: Callable[[Stream], Stream]) -> Callable[[Stream], Stream]:
        name, question = stream.__name__.replace("_", "-"), (stream.__doc__ or "").rstrip(".")
        SCENARIOS[name] = Scenario(name, field, question, schema, stream, messages, **rest)
        return stream

    return register


def in_order(*feeds: Iterable[Row]) -> Iterator[Row]:
    """Merge the messages of several feeds by time."""
    yield from sorted((row for feed in feeds for row in feed), key=lambda row: row["at"])
