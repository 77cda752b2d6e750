"""Apps and kinds of rules of other installed packages, through entry points.

    [project.entry-points."streamgauge.apps"]
    harbour = "harbour_gauge.app:APP"

    [project.entry-points."streamgauge.rules"]
    tide = "harbour_gauge.rules:Tide"

Names are read from metadata; a package is only imported when something of it is used, so a broken package
only fails there.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from ..sketches.core.errors import StreamgaugeError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

APPS = "streamgauge.apps"
RULES = "streamgauge.rules"
"""The groups of entry points."""

log = logging.getLogger("streamgauge")


class PluginError(StreamgaugeError, ValueError):
    """Another package's object can't be used; the message names the package and its entry point."""


def plugins(group: str, built_in: Collection[str]) -> dict[str, list[EntryPoint]]:
    """The entry points of installed packages in a group, by name; `built_in` names are left out.

    >>> plugins("streamgauge.nothing", ())
    {}
    """
    from importlib.metadata import entry_points

    by_name: dict[str, list[EntryPoint]] = {}
    for entry in entry_points(group=group):
        if entry.name not in built_in:
            by_name.setdefault(entry.name, []).append(entry)
    return by_name


def warn_if_shadowed(group: str, name: str) -> None:
    """Warn if packages offer something under a built-in name, because it is not used."""
    from importlib.metadata import entry_points

    for entry in entry_points(group=group, name=name):
        log.warning(
            "%s offers %r in %s, a name that streamgauge itself uses: it is ignored; rename it",
            _package(entry),
            name,
            group,
        )


def load_plugin(entries: Collection[EntryPoint]) -> Any:
    """The object of an entry point; `entries` are those with one name.

    Raises `PluginError` if there are several, or if importing it fails for any reason.
    """
    first, *others = entries
    if others:
        packages = ", ".join(sorted(_package(entry) for entry in entries))
        raise PluginError(
            f"{first.name!r} in {first.group} must be of one package, got {packages}; remove one"
        )
    try:
        return first.load()
    except Exception as error:
        raise PluginError(f"{describe(first)} can't be loaded: {type(error).__name__}: {error}") from error


def describe(entry: EntryPoint) -> str:
    """A description of an entry point, for error messages."""
    return f"{entry.name!r} of {_package(entry)} ({entry.value})"


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an unnamed package"
