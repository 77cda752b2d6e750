"""The apps whose pages a server shows, and the groups whose tables they need."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..jobs.outlets import alerts_topic_of
from ..registry import app_of
from .alert_follower import AlertFollower
from .served_app import ServedApp, tables_of


@dataclass(frozen=True)
class Pages:
    """Apps, each with the topic of its alerts (None: not followed), and the groups to follow."""

    apps: Sequence[ServedApp] = ()
    topics: Sequence[str | None] = ()
    groups: Sequence[str] = ()

    def follow(self, config: Mapping[str, Any], stack: ExitStack) -> None:
        """Follow the alerts of every app, until the stack is left."""
        for one, topic in zip(self.apps, self.topics):
            if topic is not None and one.alerts is not None:
                stack.callback(AlertFollower(topic, config, [one.alerts]).close)


def pages(
    names: Sequence[str],
    groups: Sequence[str],
    files: Collection[str],
    given: Mapping[str, str],
    rules: Path | None = None,
    alerts_topic: str | None = None,
    format: str | None = None,
) -> Pages:
    """Make the pages of these apps: the first app has the first group, and so on; further groups are
    followed.

    An app without a group is shown from files named like its parts, such as Spark's tables. Raises
    `ValueError` for an app without tables, and for settings, rules, a format or a topic that could belong to
    several apps.
    """
    of_a_run = {"--set": given, "--rules": rules, "--format": format, "--alerts-topic": alerts_topic}
    if len(names) != 1 and (unused := [name for name, value in of_a_run.items() if value]):
        for_one = "one --app; serve the apps one by one" if names else "the page of an app: name it by --app"
        raise ValueError(f"{unused[0]} is for {for_one}")
    apps: list[ServedApp] = []
    topics: list[str | None] = []
    followed: list[str] = []
    for number, name in enumerate(names):
        app = app_of(name)
        if number < len(groups):
            tables = tables_of(app, groups[number])
            topics.append(alerts_topic or alerts_topic_of(groups[number]))
        else:
            tables = {part.name: part.name for part in app.parts if part.name in files}
            topics.append(alerts_topic)
        if not tables:
            parts = ", ".join(part.name for part in app.parts)
            raise ValueError(
                f"--app {name}: name the group of its live run by --group, or files of its tables: {parts}"
            )
        apps.append(ServedApp.of_run(app, tables, given, rules, format))
        followed += apps[-1].tables.values() if number < len(groups) else ()
    return Pages(apps, topics, [*followed, *groups[len(names) :]])
