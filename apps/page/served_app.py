"""An app as shown by a page: its panels, their tables, its rules, and its alerts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ...operators.rules.kinds.absence import Absence, Flatline
from ...operators.rules.kinds.threshold import Ratio, Threshold
from ...operators.rules.late_readings import LateReadings
from ...operators.rules.rule import LimitRule, Rule
from ..app import App, Settings
from ..jobs.job import Job
from ..panels import LinesPanel, Panel
from .alert_log import AlertLog


@dataclass(frozen=True)
class ServedApp:
    """An app, the served table of each of its parts, its rules, and its alerts.

    `rules` has each part's rules, from which pages get limits; without rules, a page shows the alerts' own
    limits. `late` returns how many readings were late so far, for a run in this process. `zone` is the time
    zone of its daily windows: pages show times there until another zone is chosen.
    """

    app: App
    tables: Mapping[str, str]
    rules: Mapping[str, Sequence[Rule]] = field(default_factory=dict)
    alerts: AlertLog | None = None
    late: Callable[[], LateReadings] = LateReadings
    zone: str | None = None

    @classmethod
    def of_run(
        cls,
        app: App,
        tables: Mapping[str, str],
        given: Settings | None = None,
        rules: Path | None = None,
        format: str | None = None,
    ) -> ServedApp:
        """Make the app as `streamgauge run` runs it with these options: its parts and its rules (`Job.of`).

        Parts that such a run doesn't have are left out. Raises `ValueError` for a format, a setting or a rule
        that doesn't suit the app.
        """
        job = Job.of(app, format, given, rules)
        runs = [part.name for part in job.parts]
        own = {name: table for name, table in tables.items() if name in runs}
        return cls(job.app, own, job.rules, log_of(app, job.rules))

    def described(self) -> dict[str, Any]:
        """Return everything that a page needs for its requests and drawings, as plain JSON."""
        parts = {
            part.name: {"table": self.tables[part.name], "at": part.at}
            for part in self.app.parts
            if part.name in self.tables
        }
        panels = [self._panel(panel) for panel in self.app.panels if panel.part in parts]
        rules = [_rule(rule, part) for part, rules_ in self.rules.items() for rule in rules_]
        return {
            "name": self.app.name,
            "title": self.app.title,
            "parts": parts,
            "panels": panels,
            "rules": rules,
            "alerts": self.alerts is not None,
            **({} if self.zone is None else {"zone": self.zone}),
        }

    def _panel(self, panel: Panel) -> dict[str, Any]:
        fields = {"kind": type(panel).__name__.removesuffix("Panel").lower(), **asdict(panel)}
        if isinstance(panel, LinesPanel):
            rules = self.rules.get(panel.part, ()) if panel.limits else ()
            fields["limits"] = [_limit(rule) for rule in rules if _held(rule, panel)]
        return fields


def tables_of(app: App, group: str) -> dict[str, str]:
    """Return the group of each part's table topic, for an app that runs live as this group.

    >>> from ..registry import app_of
    >>> tables_of(app_of("iot"), "iot-sensors")["days"]
    'iot-sensors.days'
    """
    return {part.name: f"{group}.{part.name}" for part in app.parts}


def log_of(app: App, rules: Mapping[str, Sequence[Rule]]) -> AlertLog:
    """Return an empty log for the alerts of these rules of an app."""
    return AlertLog(
        app.name, {rule.name for part_rules in rules.values() for rule in part_rules if rule.over_at_once}
    )


def _held(rule: Rule, panel: LinesPanel) -> bool:
    """Whether a rule compares the panel's plain value with its limit, and not a derived value."""
    if not isinstance(rule, LimitRule) or not _is_plain(rule):
        return False
    share = panel.to if panel.against == "share" else None
    return rule.value == panel.value and not rule.each and getattr(rule, "to", "") == share


def _is_plain(rule: Rule) -> bool:
    """Whether the limit applies to the raw value rather than a derived one."""
    return type(rule) in (Threshold, Ratio)


def _limit(rule: Rule) -> dict[str, Any]:
    assert isinstance(rule, LimitRule)
    return {"rule": rule.name, "at": rule.limit.at, "clear": rule.limit.clear, "where": dict(rule.where)}


def _rule(rule: Rule, part: str) -> dict[str, Any]:
    """Describe a rule: its name, part and subject, and whether each of its events ends immediately.

    A rule with a limit also has the checked value, so that a page can draw it, with the total of which the
    value is a share, whether the limit applies to that value, and the unit of the values in its alerts.
    """
    kind = rule.kind or type(rule).__name__.lower()
    result: dict[str, Any] = {"name": rule.name, "part": part, "kind": kind, "every": rule.over_at_once}
    if isinstance(rule, LimitRule):
        result |= {
            "value": rule.value,
            "to": rule.to if isinstance(rule, Ratio) else "",
            "per": list(rule.per),
            "each": rule.each,
            "unit": rule.unit,
            "plain": _is_plain(rule),
        }
    lasts = isinstance(rule, Absence | Flatline)
    result["figure_unit"] = "s" if lasts else rule.unit if type(rule) is Threshold else ""
    return result
