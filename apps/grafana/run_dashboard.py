"""A dashboard of the metrics that Prometheus scrapes from runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .panels import GrafanaPanel, grafana_dashboard

_GROUP = 'group=~"$group"'
_RATE = "[$__rate_interval]"
_PARTITION = "{{topic}}[{{partition}}]"
_OUTLET = "{{outlet}} {{result}}"
_STACKED = {"custom": {"stacking": {"mode": "normal"}, "fillOpacity": 30}}
_HEALTH = {
    "mappings": [
        {
            "type": "value",
            "options": {"0": {"text": "no", "color": "red"}, "1": {"text": "yes", "color": "green"}},
        }
    ]
}


def run_dashboard() -> dict[str, Any]:
    """Return a dashboard of whether runs keep up and what they cost; its variable `group` selects runs.

    For metrics of the whole group it shows the largest value of its processes; metrics of processes are
    summed.
    """
    group = {
        "name": "group",
        "label": "Group",
        "type": "query",
        "query": {"query": "label_values(streamgauge_ready, group)", "refId": "group"},
        "definition": "label_values(streamgauge_ready, group)",
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "current": {"text": ["All"], "value": ["$__all"]},
    }
    rows = {
        "Does it run?": [
            _stat("Healthy", "0 if a run has failed, or is stalled while messages wait.", "healthy"),
            _stat("Ready", "Every partition has a worker, and the log was read to its end.", "ready"),
            _number(
                "Unaccounted",
                "Messages missing from the account, or counted twice. Always 0.",
                "messages_unaccounted",
            ),
            _number("Lag", "Unread messages in the input.", "lag_messages"),
            _number(
                "Watermark lag", "Time from the watermark to the wall clock.", "watermark_lag_seconds", "s"
            ),
            _number(
                "Stalled",
                "How long messages have waited with none counted.",
                "stalled_seconds",
                "s",
            ),
        ],
        "Messages": [
            GrafanaPanel(
                "timeseries",
                "Messages by outcome",
                "read = counted + filtered + late + dead-lettered; in a join of streams filtered may fall.",
                [_rate("messages_total", "max by (group, outcome)", "{{group}} {{outcome}}")],
                "cps",
                defaults=_STACKED,
            ),
            GrafanaPanel(
                "timeseries",
                "Messages read",
                "By all processes of the group.",
                [_rate("messages_read_total", "max by (group)")],
                "cps",
            ),
            GrafanaPanel(
                "timeseries",
                "Lag of partitions",
                "Unread messages in each input partition.",
                [
                    _now("partition_lag_messages", "max by (group, topic, partition)", _PARTITION),
                    _now(
                        "partition_held_back_messages",
                        "max by (group, topic, partition)",
                        f"{_PARTITION} behind an open transaction",
                    ),
                ],
            ),
            GrafanaPanel(
                "timeseries",
                "Missed, skipped, lost, duplicates",
                "Late messages sent to no topic; offsets skipped on request; counted messages that the log "
                "has lost; deltas dropped, or counted twice (at_least_once).",
                [
                    _rate(f"{name}_total", "max by (group)", f"{{{{group}}}} {name}")
                    for name in (
                        *("messages_missed", "messages_skipped", "messages_truncated"),
                        *("duplicate_deltas", "overlapping_deltas"),
                    )
                ],
                "cps",
            ),
        ],
        "Time and windows": [
            _series(
                "Watermark lag",
                "Time from the watermark to the wall clock.",
                "max",
                "watermark_lag_seconds",
                "s",
            ),
            GrafanaPanel(
                "timeseries",
                "Event-time lag of partitions",
                "The slowest partition holds windows open, unless it is idle.",
                [
                    _now(
                        "partition_watermark_timestamp_seconds",
                        "time() - max by (group, topic, partition)",
                        _PARTITION,
                    )
                ],
                "s",
            ),
            GrafanaPanel(
                "timeseries",
                "Idle partitions",
                "Idle partitions don't hold windows open.",
                [
                    _target(
                        "sum by (group) (max by (group, topic, partition) "
                        f"(streamgauge_partition_idle{{{_GROUP}}}))",
                        "{{group}}",
                    )
                ],
            ),
            GrafanaPanel(
                "timeseries",
                "Windows closed",
                "By each process.",
                [_rate("closed_windows_total", "sum by (group)")],
                "cps",
            ),
        ],
        "State": [
            _series("Open windows", "Windows that are still open.", "sum", "open_windows"),
            _series("Open groups", "Groups in open windows.", "sum", "open_groups"),
            _series("Bytes of open windows", "Sketches of open windows.", "sum", "state_bytes", "bytes"),
            _series(
                "Bytes of ids and joined tables",
                "State of deduplication and joins.",
                "sum",
                "kept_bytes",
                "bytes",
            ),
            _series(
                "Rows held up by joins", "Rows that wait for a silent partition.", "sum", "join_rows_held_up"
            ),
            _series(
                "Messages that a restart rereads", "Messages of the table topic.", "max", "replayed_messages"
            ),
        ],
        "Work": [
            GrafanaPanel(
                "timeseries",
                "Duration of checkpoints",
                "Median and 99th percentile.",
                [
                    _target(
                        f"histogram_quantile({q}, sum by (group, le) "
                        f"(rate(streamgauge_checkpoint_duration_seconds_bucket{{{_GROUP}}}{_RATE})))",
                        f"{{{{group}}}} p{round(q * 100)}",
                    )
                    for q in (0.5, 0.99)
                ],
                "s",
            ),
            GrafanaPanel(
                "timeseries",
                "Bytes of deltas",
                "Bytes sent to the table topic.",
                [_rate("delta_size_bytes_sum", "sum by (group)")],
                "Bps",
            ),
            _series("Partitions of workers", "Input partitions by group.", "sum", "assigned_partitions"),
            GrafanaPanel(
                "timeseries",
                "Rebalances",
                "Rebalances per second.",
                [_rate("rebalances_total", "sum by (group)")],
            ),
        ],
    }
    rows["Alerts to people"] = [
        GrafanaPanel(
            "timeseries",
            "Alerts by result",
            "All outlets of all scraped processes, of any group.",
            [_target(f"sum by (outlet, result) (rate(streamgauge_outlet_alerts_total{_RATE}))", _OUTLET)],
            "cps",
        ),
        GrafanaPanel(
            "timeseries",
            "Pending alerts",
            "Waiting for their group, an unreachable outlet, or the end of a silence.",
            [_target("sum by (outlet) (streamgauge_outlet_pending_alerts)", "{{outlet}}")],
        ),
    ]
    return grafana_dashboard("streamgauge: runs", "streamgauge-runs", "prometheus", rows, [group])


def _target(expression: str, legend: str) -> Mapping[str, Any]:
    return {"expr": expression, "legendFormat": legend, "editorMode": "code", "range": True}


def _rate(name: str, how: str, legend: str = "{{group}}") -> Mapping[str, Any]:
    return _target(f"{how} (rate(streamgauge_{name}{{{_GROUP}}}{_RATE}))", legend)


def _now(name: str, how: str, legend: str = "{{group}}") -> Mapping[str, Any]:
    return _target(f"{how} (streamgauge_{name}{{{_GROUP}}})", legend)


def _stat(title: str, text: str, name: str) -> GrafanaPanel:
    target = _now(name, "min by (group)")
    return GrafanaPanel("stat", title, text, [target], width=4, height=4, defaults=_HEALTH)


def _number(title: str, text: str, name: str, unit: str = "short") -> GrafanaPanel:
    target = _now(name, "max by (group)")
    return GrafanaPanel("stat", title, text, [target], unit, width=4, height=4)


def _series(title: str, text: str, how: str, name: str, unit: str = "short") -> GrafanaPanel:
    target = _now(name, f"{how} by (group)")
    return GrafanaPanel("timeseries", title, text, [target], unit)
