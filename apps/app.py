"""What an app is: a field's formats, the aggregates of its messages, and the rules that report events.

An `App` is a value. `streamgauge run APP` runs any of them: on a recording through the embedded broker, or on
a topic of yours, by either engine, with the same alerts (`apps.running`). A new app is a folder with an
`app.py` that holds one, and a line in `apps.registry`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from ..operators.definition.stream import Stream
from ..operators.formats.decode import Decoder
from ..operators.rules.alerting import Outlet
from ..operators.rules.command import Command
from ..operators.rules.rule import Rule
from .panels import Panel
from .recordings.compressed_files import opened, whole


class Message(NamedTuple):
    """A recorded message: its bytes, its key, and when it was sent (ms since 1970), if that is known.

    Messages of one key go to one partition, in order.
    """

    value: bytes
    key: bytes | None = None
    sent_ms: int | None = None


@dataclass(frozen=True)
class Feed:
    """Where messages are: a topic, its brokers, further settings of librdkafka.

    A format's `source` begins with `stream`, which hands all three on.
    """

    topic: str
    bootstrap_servers: str
    config: Mapping[str, Any] = field(default_factory=dict)

    def stream(
        self,
        value: Decoder,
        time: str | pl.Expr | None = None,
        message: Sequence[str] | Mapping[str, str] = (),
    ) -> Stream:
        """The messages, decoded by `value`; `time` and `message` as for `Stream.from_kafka`."""
        return Stream.from_kafka(
            self.topic,
            value=value,
            time=time,
            message=message,
            bootstrap_servers=self.bootstrap_servers,
            config=self.config,
        )


Settings = Mapping[str, str]
"""What ``--set NAME=VALUE`` gave, with the format's own values for the rest."""


def number(settings: Settings, name: str, least: float = -math.inf) -> float:
    """A setting that is a number, `least` or more. Raises `ValueError` for one that isn't.

    >>> number({"limit": "30"}, "limit")
    30.0
    """
    try:
        value = float(settings[name])
    except ValueError:
        value = math.nan
    if not least <= value < math.inf:
        bound = "" if math.isinf(least) else f" from {least:g} on"
        raise ValueError(f"--set {name} must be a number{bound}, got {settings[name]}")
    return value


_DUPLICATES = "100000"
"""Messages of a partition among which an event counts once: about 10 MB for each question of an app."""


@dataclass(frozen=True)
class AppFormat:
    """One form in which a field's messages come.

    `source` makes the stream's rows from a topic's messages, as they are in the wild; all formats of an app
    have the same columns. `messages` reads those of a recording, `recognises` whether a file is one, from its
    name and its first 64 KiB, unpacked. `settings` are the names that ``--set`` takes, with their usual
    values. `note` is a line for people about what was concluded of a recording, such as the unit of its
    times; empty for nothing. `validate_live` refuses a live run, by an error that says what to do, whose
    settings leave it without what it needs to read any message. A recording that formats named in `over`
    recognise as well is of this one.
    """

    name: str
    summary: str
    source: Callable[[Feed, Settings], Stream]
    recognises: Callable[[Path, bytes], bool]
    messages: Callable[[Path, Settings], Iterator[Message]]
    settings: Settings = field(default_factory=dict)
    note: Callable[[Path, Settings], str] = lambda path, settings: ""
    validate_live: Callable[[Settings], None] = lambda settings: None
    over: Sequence[str] = ()


@dataclass(frozen=True)
class AppPart:
    """One question of an app: a stream of the app's rows, and rules over its windows.

    `ask` gives windows and aggregates to the rows, `rules` the app's own rules by what ``--set`` gave; those
    of a rules file take their place. `at` names the key that holds a reading's own time, if rules look at
    readings and not at windows (`Alerting`). The table of a part whose answers are `shown` is in the result
    of a run; with `most`, the name of an aggregate and a number, only the rows with the most of it, in each
    window and for each value of the first key. If `total` names one, so is a table of its windows merged into
    one, for which they must lie side by side. A part that isn't `wanted` with what ``--set`` gave does not
    run. It looks at the rows that `of` is true of, and no other's time passes in it. In a part with `repeats`
    events count as often as they are delivered. In one with `keep_late` rules get readings however late they
    come (`Stream.tumbling`), in the order of each key, and `lateness` is how long after a key's latest
    reading an earlier one is accepted unless ``--set lateness=`` says otherwise. `derive` adds to the rows of
    its answers what follows from them, such as one answer divided by another.
    """

    name: str
    ask: Callable[[Stream], Stream]
    rules: Callable[[Settings], Sequence[Rule]] = lambda settings: ()
    at: str | None = None
    shown: bool = True
    most: tuple[str, int] | None = None
    wanted: Callable[[Settings], bool] = lambda settings: True
    total: str = ""
    of: pl.Expr | None = None
    repeats: bool = False
    keep_late: bool = False
    lateness: str = "1m"
    derive: Callable[[list[dict[str, Any]]], list[dict[str, Any]]] = lambda rows: rows


@dataclass(frozen=True)
class Example:
    """Messages as the field sends them, made up for demos, in which something happens.

    ``messages(seed, now_ms)`` gives them in the order of their times (`sent_ms`), from some hours before
    ``now_ms`` on, without end; the same for the same numbers. `format` and `settings` are what the app runs
    with. `events` are what happens within the first half minute after ``now_ms``: the name of a rule and the
    key that it is about. With `log` the messages are lines, which a program writes to a file of that name.
    """

    format: str
    messages: Callable[[int, int], Iterator[Message]]
    settings: Settings = field(default_factory=dict)
    events: Sequence[tuple[str, Any]] = ()
    log: str = ""


@dataclass(frozen=True)
class App:
    """A field's formats, questions and rules. `kinds` are rules of its own that a rules file may name.

    `event` are the columns that name what a row is about: of the rows of one event, among the last
    ``--set duplicates=`` messages of a partition, the first counts, and the others are filtered. A row with a
    null in one of them is an event by itself. ``--set delay=`` is how long rows are waited for, in all parts,
    and ``--set lateness=`` how long after a key's latest reading an earlier one is accepted.
    `outlets` makes those that are the app's own from what ``--set`` gave. `commands` are what is done when an
    event of a rules file's rule begins and ends, by the same, if the rule has no command itself.
    `panels` are what its page shows, in this order, below what fired (`apps.panels`); a `unit` of theirs in
    braces, such as ``{value_unit}``, is what that setting says. Raises
    `ValueError` for a panel of a part that there isn't.
    """

    name: str
    title: str
    formats: Sequence[AppFormat]
    parts: Sequence[AppPart]
    kinds: Mapping[str, type[Rule]] = field(default_factory=dict)
    settings: Settings = field(default_factory=dict)
    event: Sequence[str] = ()
    outlets: Callable[[Settings], Sequence[Outlet]] = lambda settings: ()
    commands: Callable[[Settings, Rule], Sequence[Command]] = lambda settings, rule: ()
    panels: Sequence[Panel] = ()
    example: Example | None = None

    def __post_init__(self) -> None:
        own = {"duplicates": _DUPLICATES} if self.event else {}
        if any(part.keep_late for part in self.parts):
            own["lateness"] = ""
        object.__setattr__(self, "settings", {**self.settings, **own, "delay": ""})
        parts = [part.name for part in self.parts]
        for panel in self.panels:
            if panel.part not in parts:
                raise ValueError(
                    f"{self.name}: the panel {panel.title!r} is of {panel.part!r}; "
                    f"its parts are {', '.join(parts)}"
                )

    def format(
        self, name: str | None, path: Path | None = None, requested: Collection[str] = ()
    ) -> AppFormat:
        """The format of that name, or the one that a recording is of, among those with `requested` settings.

        Raises `ValueError`, naming the formats, for an unknown one or a file that none recognises, and for a
        file that is empty.
        """
        known = ", ".join(one.name for one in self.formats)
        if name is not None:
            matches = [one for one in self.formats if one.name == name]
            if not matches:
                raise ValueError(f"{name!r} is not a format of {self.name}; it has {known}")
            return matches[0]
        if path is None:
            return self.formats[0]
        head = _head_of(path)
        if not head:
            raise ValueError(f"{path} is empty: there is nothing to replay")
        capable = [one for one in self.formats if set(requested) <= {*self.settings, *one.settings}]
        with whole(path):
            for one in capable or self.formats:
                if one.recognises(path, head):
                    better = (other for other in capable if one.name in other.over)
                    return next((other for other in better if other.recognises(path, head)), one)
        raise ValueError(
            f"{path}{_recorded_from(head)} matches no format of {self.name}; name one with --format: {known}"
        )

    def with_units(self, settings: Settings) -> App:
        """The app whose panels have the units that settings name, such as ``{value_unit}``."""

        def named(unit: str) -> str:
            return settings.get(unit.strip("{}"), "") if unit[:1] == "{" else unit

        panels: list[Any] = list(self.panels)
        for number, panel in enumerate(panels):
            if (unit := getattr(panel, "unit", ""))[:1] == "{":
                panels[number] = replace(panel, unit=named(unit))
            elif units := getattr(panel, "units", {}):
                panels[number] = replace(panel, units={path: named(one) for path, one in units.items()})
        return replace(self, panels=panels)

    def chosen(self, form: AppFormat, given: Settings) -> dict[str, str]:
        """The settings of a run. Raises `ValueError` for one that neither app nor format has."""
        known = {**self.settings, **form.settings}
        if unknown := [name for name in given if name not in known]:
            raise ValueError(
                f"--set {unknown[0]}: {self.name} has no such setting; with the format {form.name} it has "
                f"{', '.join(known) or 'none'}"
            )
        return {**known, **given}


def _recorded_from(head: bytes) -> str:
    """The websocket that a recording names in its first line, in words.

    >>> _recorded_from(b"wss://ws.example.com/v1 <-> 1618677816.8")
    ', recorded from ws.example.com,'
    """
    match = re.match(rb"wss?://([\w.-]+)", head)
    return "" if match is None else f", recorded from {match[1].decode()},"


def _head_of(path: Path) -> bytes:
    """The beginning of a recording, a file or an archive."""
    if path.is_dir():
        from .recordings.archived import head_of

        return head_of(str(path))
    with whole(path), opened(path) as file:
        return file.read(65_536)
