"""What a run of an app was asked to do, checked before anything is started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...operators.definition.stream import Stream
from ...operators.rules.alerting import Alerting, Outlet
from ...operators.rules.rule import Rule
from ...operators.rules.written import KINDS, read_rules_by_part
from ..app import App, AppFormat, AppPart, Feed


@dataclass(frozen=True)
class Job:
    """An app, the format its messages come in, its settings, and the rules of its parts."""

    app: App
    form: AppFormat
    settings: Mapping[str, str]
    rules: Mapping[str, Sequence[Rule]] = field(default_factory=dict)

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
        form = app.format(format, recording)
        settings = app.chosen(form, given or {})
        if rules is not None:
            names = [part.name for part in app.parts]
            by_part = read_rules_by_part(rules, names, {**KINDS, **app.kinds})
        else:
            by_part = {part.name: list(part.rules(settings)) for part in app.parts}
        return cls(app, form, settings, by_part)

    def streams(self, feed: Feed) -> dict[str, Stream]:
        """The stream of each part that has something to do, by its name."""
        rows = self.form.source(feed, self.settings)
        return {part.name: part.ask(rows).complete() for part in self.parts}

    @property
    def parts(self) -> list[AppPart]:
        """The parts with rules, or with answers to show."""
        return [part for part in self.app.parts if part.shown or self.rules.get(part.name)]

    def alerting(self, part: AppPart, to: Sequence[Outlet], stale: str | None = None) -> Alerting | None:
        """The rules of a part, if it has any, and where their alerts go besides the app's own outlets."""
        rules = self.rules.get(part.name, ())
        if not rules:
            return None
        outlets = [*to, *self.app.outlets(self.settings)]
        return Alerting(list(rules), outlets, part.at, stale, self.app.name)
