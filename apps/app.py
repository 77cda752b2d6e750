"""The definition of an app: a field's formats, the aggregates of its messages, and rules that report events.

An `App` is a value. `streamgauge run APP` runs any app: on a recording through the embedded broker, or on
your own topic, on either engine, with the same alerts (`apps.running`). To add an app, create a folder with
an `app.py` that defines one, and add a line to `apps.registry`.
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
    """A recorded message: its bytes, its key, and when it was sent (ms since 1970), if known.

    Messages of one key go to one partition, in order.
    """

    value: bytes
    key: bytes | None = None
    sent_ms: int | None = None


@dataclass(frozen=True)
class Feed:
    """The source of messages: a topic, its brokers, and further settings of librdkafka.

    A format's `source` begins with `stream`, which passes on all three.
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
        """Return the messages as a stream, decoded by `value`; `time` and `message` as in
        `Stream.from_kafka`."""
        return Stream.from_kafka(
            self.topic,
            value=value,
            time=time,
            message=message,
            bootstrap_servers=self.bootstrap_servers,
            config=self.config,
        )


_NO_LATENESS = ", as its rules don't wait for earlier readings of a key; delay= waits for late rows"

Settings = Mapping[str, str]
"""The settings of ``--set NAME=VALUE``, with the format's defaults for the rest."""


def number(settings: Settings, name: str, least: float = -math.inf) -> float:
    """Read a setting that must be a number of at least `least`. Raises `ValueError` for anything else.

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
"""The number of messages of a partition in which an event counts once: about 10 MB per part of an app."""


@dataclass(frozen=True)
class AppFormat:
    """One format of a field's messages.

    `source` makes the stream's rows from a topic's messages, as they are in the wild; all formats of an app
    have the same columns. `messages` reads the messages of a recording. `recognises` decides whether a file
    is such a recording, from its name and its first 64 KiB, unpacked. `settings` are the names that ``--set``
    accepts, with their defaults. `note` is a line for people about what was detected in a recording, such as
    the unit of its times; it may be empty. `validate_live` refuses a live run whose settings lack something
    that is needed to read any message, with an error that explains what to do. If formats named in `over`
    recognise a recording as well, this format takes precedence.
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
    """One part of an app: a stream of the app's rows, and rules over its windows.

    `ask` adds windows and aggregates to the rows. `rules` returns the app's own rules, given the settings;
    the rules of a file replace them. `at` names the key that contains a reading's own time, if rules evaluate
    readings and not windows (`Alerting`). The table of a part whose answers are `shown` is in the result of a
    run; with `most`, the name of an aggregate and a number, it has only that number of rows with the largest
    values, in each window and for each value of the first key. If `total` names a table, the result also
    contains all windows merged into one under that name; the windows must not overlap. A part that isn't
    `wanted` with the settings does not run. It gets only the rows for which `of` is true, and only their
    times count. In a part with `repeats`, events count as often as they are delivered. In a part with
    `keep_late`, rules get readings however late they arrive (`Stream.tumbling`), in the order of each key,
    and `lateness` is how long after a key's latest reading an earlier one is accepted, unless
    ``--set lateness=`` sets it. `cancels` names the answer of readings that cancel earlier ones (`Alerting`).
    `derive` adds derived values to the rows of its answers, such as one answer divided by another.
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
    cancels: str | None = None
    derive: Callable[[list[dict[str, Any]]], list[dict[str, Any]]] = lambda rows: rows


@dataclass(frozen=True)
class Example:
    """Generated messages for demos, typical of the field, in which something happens.

    ``messages(seed, now_ms)`` returns an endless sequence in the order of their times (`sent_ms`), beginning
    some hours before ``now_ms``, and the same for the same arguments. The app runs with `format` and
    `settings`. `events` are the events within the first half minute after ``now_ms``: the name of a rule and
    its key. With `log`, the messages are lines, which a program writes to a file of that name.
    """

    format: str
    messages: Callable[[int, int], Iterator[Message]]
    settings: Settings = field(default_factory=dict)
    events: Sequence[tuple[str, Any]] = ()
    log: str = ""


@dataclass(frozen=True)
class App:
    """A field's formats, questions and rules. `kinds` are its own kinds of rules, for rules files.

    `event` names the columns that identify an event: if several rows of one event are among the last
    ``--set duplicates=`` messages of a partition, the first counts and the others are filtered. A row with a
    null in one of them is an event by itself. ``--set delay=`` is how long all parts wait for late rows, and
    ``--set lateness=`` how long after a key's latest reading an earlier one is accepted. `outlets` creates
    the app's own outlets from the settings. `commands` returns, from the settings, the commands of a rule in
    a rules file that has none of its own. `panels` are the panels of its page, in this order, below the
    alerts (`apps.panels`); a `unit` in braces, such as ``{value_unit}``, is replaced by that setting. Raises
    `ValueError` for a panel of an unknown part.
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
        """Return the format of that name, or of a recording, among formats with the `requested` settings.

        Raises `ValueError`, naming the formats, for an unknown one, for a file that none recognises, and for
        an empty file.
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
        """Return the app with units in its panels, such as ``{value_unit}``, replaced by settings."""

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
        """Return the settings of a run. Raises `ValueError` for one that neither the app nor the format
        has."""
        known = {**self.settings, **form.settings}
        if unknown := [name for name in given if name not in known]:
            why = _NO_LATENESS if unknown[0] == "lateness" else ""
            raise ValueError(
                f"--set {unknown[0]}: {self.name} has no such setting{why}; with the format {form.name} it "
                f"has {', '.join(known) or 'none'}"
            )
        return {**known, **given}


def _recorded_from(head: bytes) -> str:
    """Describe the websocket that a recording names in its first line.

    >>> _recorded_from(b"wss://ws.example.com/v1 <-> 1618677816.8")
    ', recorded from ws.example.com,'
    """
    match = re.match(rb"wss?://([\w.-]+)", head)
    return "" if match is None else f", recorded from {match[1].decode()},"


def _head_of(path: Path) -> bytes:
    """Read the beginning of a recording, a file or an archive."""
    if path.is_dir():
        from .recordings.archived import head_of

        return head_of(str(path))
    with whole(path), opened(path) as file:
        return file.read(65_536)
