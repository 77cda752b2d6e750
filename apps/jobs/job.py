"""A run of an app, validated before anything is started."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal, Protocol

import pyarrow as pa

from ...operators.definition.deduplication import MANY
from ...operators.definition.stream import Stream
from ...operators.rules.alerting import Alerting, Outlet
from ...operators.rules.command import Command, command_of
from ...operators.rules.late_readings import LateReadings
from ...operators.rules.rule import Rule
from ...operators.rules.toml_rules import KINDS, read_rules_by_part
from ...operators.sketching.account import Account
from ...operators.windows.durations import microseconds
from ..app import App, AppFormat, AppPart, Feed
from .largest import largest


@dataclass(frozen=True)
class Job:
    """An app, the format of its messages, its settings, and the rules of its parts."""

    app: App
    form: AppFormat
    settings: Mapping[str, str]
    rules: Mapping[str, Sequence[Rule]] = field(default_factory=dict)
    acts: bool = True
    """Whether the commands of its rules are executed."""
    recorded: bool = False
    """Whether it is a recording read at full speed; then late readings are awaited for `_RECORDED`."""
    _made: list[tuple[Feed, dict[str, Stream]]] = field(
        default_factory=list, init=False, repr=False, compare=False
    )
    """The streams of feeds, shared by a run, its page and its exact results."""

    @classmethod
    def of(
        cls,
        app: App,
        format: str | None = None,
        given: Mapping[str, str] | None = None,
        rules: Path | None = None,
        recording: Path | None = None,
    ) -> Job:
        """Make a job. Raises `ValueError` for a format, a setting or a rule that doesn't suit the app."""
        given, done = _without_commands(given or {})
        form = app.format(format, recording, given)
        settings = app.chosen(form, given)
        if settings["delay"]:
            _duration_us("delay", settings["delay"])
        if settings.get("lateness"):
            _duration_us("lateness", settings["lateness"])
        parts = [part for part in app.parts if part.wanted(settings)]
        if rules is not None:
            by_part = read_rules_by_part(rules, [part.name for part in parts], {**KINDS, **app.kinds})
            by_part = _with_usual_commands(by_part, partial(app.commands, settings))
        else:
            by_part = {part.name: list(part.rules(settings)) for part in parts}
        return cls(app.with_units(settings), form, settings, _with_commands(by_part, done))

    def streams(self, feed: Feed) -> dict[str, Stream]:
        """Return the stream of each part that has something to do, by name.

        Raises `ValueError` for settings that don't suit the format, or deduplication.
        """
        for known, streams in self._made:
            if known == feed:
                return dict(streams)
        rows = self.form.source(feed, self.settings)
        streams = {part.name: self._stream_of(part, self._of(part, rows)).complete() for part in self.parts}
        self._made.append((feed, streams))
        return dict(streams)

    def _of(self, part: AppPart, rows: Stream) -> Stream:
        """Return a part's rows, without repeated events."""
        if part.of is not None:
            rows = rows.filter(part.of)
        if part.repeats or not self.app.event:
            return rows
        choice = self.settings["duplicates"]
        if not choice.isdecimal() or int(choice) > MANY:
            raise ValueError(
                f"--set duplicates must be a number up to {MANY:,}, or 0 to count all, got {choice}"
            )
        return rows.deduplicate(*self.app.event, last=int(choice)) if int(choice) else rows

    def _stream_of(self, part: AppPart, rows: Stream) -> Stream:
        """Return the stream of a part, and how long it waits for late rows."""
        stream = part.ask(rows)
        if part.keep_late:
            stream = replace(stream, keep_late=True)
        if delay := self.settings["delay"]:
            return replace(stream, delay_us=_duration_us("delay", delay))
        if self.recorded and part.at is not None:
            return replace(stream, delay_us=microseconds(_RECORDED))
        return stream

    @property
    def parts(self) -> list[AppPart]:
        """Return the parts with rules, or with answers to show at the end or on the page."""
        shown = {panel.part for panel in self.app.panels}
        parts = [part for part in self.app.parts if part.wanted(self.settings)]
        return [part for part in parts if part.shown or part.name in shown or self.rules.get(part.name)]

    def shown(self, tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
        """Return the tables of the parts that are shown, limited to the rows that are shown."""
        parts = [part for part in self.parts if part.shown]
        return {
            part.name: tables[part.name] if part.most is None else largest(tables[part.name], *part.most)
            for part in parts
        }

    def alerting(self, part: AppPart, to: Sequence[Outlet], stale: str | None = None) -> Alerting | None:
        """Return a part's rules, if any, with outlets in addition to the app's own."""
        rules = self.rules.get(part.name, ())
        if not self.acts:
            rules = [replace(rule, command=None) for rule in rules]
        if not rules:
            return None
        outlets = [*to, *self.app.outlets(self.settings)]
        # A recording waits long enough for late readings that nothing has to be corrected.
        lateness = self.settings.get("lateness") or ("0s" if self.recorded else part.lateness)
        return Alerting(
            list(rules), outlets, part.at, stale, self.app.name, lateness=lateness, cancels=part.cancels
        )


_COMMAND, _CLEARED = "command.", "cleared."
_RECORDED = "1d"
"""How long a recording read at full speed waits for late rows: no sensor's clock is further behind."""


def _duration_us(setting: str, given: str) -> int:
    try:
        return microseconds(given)
    except ValueError as error:
        raise ValueError(f"--set {setting}: {error}") from None


def _without_commands(given: Mapping[str, str]) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Split off the settings that are commands; return the others, and the commands' lines by rule."""
    others: dict[str, str] = {}
    lines: dict[str, list[str]] = {}
    for name, value in given.items():
        for at, prefix in enumerate((_COMMAND, _CLEARED)):
            if name.startswith(prefix):
                lines.setdefault(name.removeprefix(prefix), ["", ""])[at] = value
                break
        else:
            others[name] = value
    return others, lines


def _with_usual_commands(
    by_part: Mapping[str, Sequence[Rule]], commands: Callable[[Rule], Sequence[Command]]
) -> dict[str, list[Rule]]:
    """Return a file's rules, with the app's own commands for rules without any."""
    return {
        part: [rule if rule.commands else replace(rule, command=commands(rule)) for rule in rules]
        for part, rules in by_part.items()
    }


def _with_commands(
    by_part: Mapping[str, Sequence[Rule]], lines: Mapping[str, Sequence[str]]
) -> dict[str, list[Rule]]:
    """Return the rules with the commands of `--set`. Raises `ValueError` for an unknown rule."""
    names = [rule.name for rules in by_part.values() for rule in rules]
    commands = {}
    for rule, (fired, cleared) in lines.items():
        if rule not in names:
            raise ValueError(
                f"--set {_COMMAND}{rule}: unknown rule; the rules are {', '.join(names) or 'none'}"
            )
        try:
            commands[rule] = command_of(fired, cleared)
        except ValueError as error:
            raise ValueError(f"--set {_COMMAND}{rule}: {error}") from None
    return {
        part: [
            replace(r, command=(*r.commands, commands[r.name])) if r.name in commands else r for r in rules
        ]
        for part, rules in by_part.items()
    }


@dataclass(frozen=True)
class Live:
    """An app's job on a live topic, and the group or folder by which it resumes where it ended.

    `state` is the folder of Spark's checkpoints and tables; `workers` and `metrics` are for the consumer, as
    are `table`, the folder where it stores closed windows, and `keep`, how long. `stale` is the time without
    any message after which an alert fires, `to` has the outlets of alerts. Raises `ValueError` for options
    that the engine doesn't support, and what the format raises for a live run that couldn't read anything.
    """

    job: Job
    feed: Feed
    group: str
    engine: str = "local"
    to: Sequence[Outlet] = ()
    stale: str | None = None
    state: Path | None = None
    workers: int = 1
    metrics: str | None = None
    truncated: Literal["stop", "continue"] = "stop"
    table: str | None = None
    keep: str | None = None

    def __post_init__(self) -> None:
        if self.engine == "spark" and (self.table or self.keep):
            raise ValueError(
                "--table and --keep are the consumer's; on Spark tables are in the --state folder"
            )
        if self.keep is not None and self.table is None:
            raise ValueError(
                "--keep is how long closed windows are stored: name their folder by --table FOLDER"
            )
        if self.engine == "local" and self.state is not None:
            raise ValueError("--state is Spark's; the consumer keeps its state in Kafka")
        if self.engine == "spark" and self.state is None:
            raise ValueError("a live run on Spark resumes from its checkpoints: name --state FOLDER")
        if self.engine == "spark" and (self.metrics or self.workers > 1):
            raise ValueError("--metrics and --workers are the consumer's; on Spark leave them out")
        self.job.form.validate_live(self.job.settings)


class RunView(Protocol):
    """An observer of an app's run, such as its page."""

    def take(self, part: str, table: pa.Table) -> None:
        """Receive closed windows of a part."""

    def fill(self, part: str, table: pa.Table) -> None:
        """Receive all open windows of a part in their current state."""

    def count(self, accounts: Mapping[str, Account]) -> None:
        """Receive the outcome of the messages so far, by part."""

    def watch_late(self, readings: Callable[[], LateReadings]) -> None:
        """Receive the function that returns how many readings were late so far."""


class Going(Protocol):
    """An app running on an engine."""

    def account(self) -> Account:
        """Return the outcome of the messages so far, for the part with the least progress."""

    def wait(self) -> None:
        """Wait until the app has ended or its end was requested, possibly by `KeyboardInterrupt`."""

    def stop(self) -> Account:
        """End the app cleanly; return its last account."""

    def late_readings(self) -> LateReadings:
        """Return how many readings were late, for parts whose rules evaluate readings."""


def least(accounts: Sequence[Account]) -> Account:
    """Return the account of the part that has read the least.

    >>> least([Account(read=3, counted=3), Account(read=2, counted=2)]).read
    2
    """
    return min(accounts, key=lambda account: account.read)
