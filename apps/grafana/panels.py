"""Dashboards and panels in Grafana's JSON model.

Source: Grafana's documentation, "JSON model"; Grafana reads older models, so this is schema 39, of Grafana
11.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

WIDTH = 24
"""The number of columns of a dashboard's grid."""
_HEIGHT = 8


@dataclass(frozen=True)
class GrafanaPanel:
    """One panel: its kind, title and description, its queries, and its options."""

    kind: str
    title: str
    description: str
    targets: Sequence[Mapping[str, Any]]
    unit: str = "short"
    width: int = 12
    height: int = _HEIGHT
    defaults: Mapping[str, Any] = field(default_factory=dict)
    overrides: Sequence[Mapping[str, Any]] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def model(self, number: int, x: int, y: int, source: Mapping[str, str]) -> dict[str, Any]:
        """Return the panel's JSON, with its place in the grid."""
        letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
        return {
            "id": number,
            "type": self.kind,
            "title": self.title,
            "description": self.description,
            "datasource": dict(source),
            "gridPos": {"x": x, "y": y, "w": self.width, "h": self.height},
            "targets": [
                {"refId": letters[at], "datasource": dict(source), **target}
                for at, target in enumerate(self.targets)
            ],
            "fieldConfig": {
                "defaults": {"unit": self.unit, **self.defaults},
                "overrides": [dict(one) for one in self.overrides],
            },
            "options": dict(self.options),
        }


def grafana_dashboard(
    title: str,
    uid: str,
    source_type: str,
    rows: Mapping[str, Sequence[GrafanaPanel]],
    variables: Sequence[Mapping[str, Any]] = (),
    span: str = "now-1h",
) -> dict[str, Any]:
    """Return a dashboard with named rows of panels, for any datasource of a type."""
    source = {"type": source_type, "uid": "${datasource}"}
    choice = {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": source_type,
        "refresh": 1,
        "hide": 0,
    }
    panels: list[dict[str, Any]] = []
    y = 0
    for name, some in rows.items():
        panels.append(
            {
                "id": len(panels) + 1,
                "type": "row",
                "title": name,
                "collapsed": False,
                "panels": [],
                "gridPos": {"x": 0, "y": y, "w": WIDTH, "h": 1},
            }
        )
        x, y, height = 0, y + 1, 0
        for panel in some:
            if x + panel.width > WIDTH:
                x, y, height = 0, y + height, 0
            panels.append(panel.model(len(panels) + 1, x, y, source))
            x, height = x + panel.width, max(height, panel.height)
        y += height
    return {
        "title": title,
        "uid": uid,
        "tags": ["streamgauge"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "timezone": "browser",
        "refresh": "30s",
        "time": {"from": span, "to": "now"},
        "templating": {"list": [choice, *({**one, "datasource": source} for one in variables)]},
        "annotations": {"list": []},
        "panels": panels,
    }
