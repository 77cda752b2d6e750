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
from ...operators.rules.rule import Rule
from ...operators.rules.toml_rules import KINDS, read_rules_by_part
from ...operators.sketching.account import Account
from ...operators.windows.durations import microseconds
from ..app import App, AppFormat, AppPart, Feed
from .largest import largest


@dataclass(frozen=True)
class Job:
    """An app, the format its messages come in, its settings, and the rules of its parts."""

    app: App
    form: AppFormat
    settings: Mapping[str, str]
    rules: Mapping[str, Sequence[Rule]] = field(default_factory=dict)
    acts: bool = True
    """Whether the commands of its rules are carried out."""
    recorded: bool = False
    """Whether it is a recording that nobody watches: readings are then waited for as long as `_RECORDED`."""
    _made: list[tuple[Feed, dict[str, Stream]]] = field(
        default_factory=list, init=False, repr=False, compare=False
    )
    """The streams of feeds, which a run, its page and its exact figures want alike."""

    @classmethod
    def of(
        cls,
        app: App,
        format: str | None = None,
        given: Mapping[str, str] | None = None,
        rules: Path | None = None,
        recording: Path | None = None,
    ) -> Job:
        """What to run. Raises `ValueError` for a format, a setting or a rule that the app can't have."""
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
        """The stream of each part that has something to do, by its name.

        Raises `ValueError` for settings that the format, or counting events once, can't do with.
        """
        for known, streams in self._made:
            if known == feed:
                return dict(streams)
        rows = self.form.source(feed, self.settings)
        streams = {part.name: self._stream_of(part, self._of(part, rows)).complete() for part in self.parts}
        self._made.append((feed, streams))
        return dict(streams)

    def _of(self, part: AppPart, rows: Stream) -> Stream:
        """The rows that a part looks at, without those of events that were delivered before."""
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
        """The stream of a part, and for how long it waits for rows."""
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
        """The parts with rules, or with answers to show, in the end or on the page."""
        shown = {panel.part for panel in self.app.panels}
        parts = [part for part in self.app.parts if part.wanted(self.settings)]
        return [part for part in parts if part.shown or part.name in shown or self.rules.get(part.name)]

    def shown(self, tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
        """The tables of the parts that are shown, of each no more than is."""
        parts = [part for part in self.parts if part.shown]
        return {
            part.name: tables[part.name] if part.most is None else largest(tables[part.name], *part.most)
            for part in parts
        }

    def alerting(self, part: AppPart, to: Sequence[Outlet], stale: str | None = None) -> Alerting | None:
        """The rules of a part, if it has any, and where their alerts go besides the app's own outlets."""
        rules = self.rules.get(part.name, ())
        if not self.acts:
            rules = [replace(rule, command=None) for rule in rules]
        if not rules:
            return None
        outlets = [*to, *self.app.outlets(self.settings)]
        # A recording waits so long for late readings that none is left to be corrected.
        lateness = self.settings.get("lateness") or ("0s" if self.recorded else part.lateness)
        return Alerting(list(rules), outlets, part.at, stale, self.app.name, lateness=lateness)


_COMMAND, _CLEARED = "command.", "cleared."
_RECORDED = "1d"
"""A recording that is read at once can wait this long: no sensor's clock is further behind."""


def _duration_us(setting: str, given: str) -> int:
    try:
        return microseconds(given)
    except ValueError as error:
        raise ValueError(f"--set {setting}: {error}") from None


def _without_commands(given: Mapping[str, str]) -> tuple[dict[str, str], dict[str, list[str]]]:
    """The settings that are no commands, and the lines of those that are by their rule: begun, and over."""
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
    """The rules of a file, those without a command with the app's own."""
    return {
        part: [rule if rule.commands else replace(rule, command=commands(rule)) for rule in rules]
        for part, rules in by_part.items()
    }


def _with_commands(
    by_part: Mapping[str, Sequence[Rule]], lines: Mapping[str, Sequence[str]]
) -> dict[str, list[Rule]]:
    """The rules with the commands of `--set`. Raises `ValueError` for one of a rule that there isn't."""
    names = [rule.name for rules in by_part.values() for rule in rules]
    commands = {}
    for rule, (fired, cleared) in lines.items():
        if rule not in names:
            raise ValueError(
                f"--set {_COMMAND}{rule}: there is no such rule; there are {', '.join(names) or 'none'}"
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
    """An app's job on a topic of somebody's, and the group or folder by which it resumes where it ended.

    `state` is the folder where Spark keeps its checkpoints and tables; `workers` and `metrics` are the
    consumer's, as are `table`, the folder where it stores closed windows, and `keep`, how long. `stale` is
    after how long without any message an alert fires, `to` where alerts go.
    Raises `ValueError` for options that the engine doesn't have, and what the format raises for a live run
    that could read nothing.
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
            raise ValueError("a live run on Spark goes on from its checkpoints: name --state FOLDER")
        if self.engine == "spark" and (self.metrics or self.workers > 1):
            raise ValueError("--metrics and --workers are the consumer's; on Spark leave them out")
        self.job.form.validate_live(self.job.settings)


class RunView(Protocol):
    """Who sees an app's run, such as its page."""

    def take(self, part: str, table: pa.Table) -> None:
        """Windows of a part that have closed."""

    def fill(self, part: str, table: pa.Table) -> None:
        """All windows of a part that fill, as they are now."""

    def count(self, accounts: Mapping[str, Account]) -> None:
        """What became of the messages so far, by part."""


class Going(Protocol):
    """An app that runs on an engine."""

    def account(self) -> Account:
        """What became of the messages so far, by the part that has come the least far."""

    def wait(self) -> None:
        """Return when it has ended or its end was requested: by a return or by `KeyboardInterrupt`."""

    def stop(self) -> Account:
        """End it in order; gives its last account."""


def least(accounts: Sequence[Account]) -> Account:
    """The account of the part that has read the least.

    >>> least([Account(read=3, counted=3), Account(read=2, counted=2)]).read
    2
    """
    return min(accounts, key=lambda account: account.read)
