"""The apps of the command line, by name: each is a line here, or an entry point of another package.

Apps are loaded on use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from ..operators import plugins

if TYPE_CHECKING:
    from .app import App

APPS = {
    "trending": "trending.app",
    "stocks": "stocks.app",
    "supernova": "supernova.app",
    "iot": "iot.app",
    "logs": "logs.app",
}
"""The package's own apps."""


def app_names() -> list[str]:
    """Return the names of all apps: built-in ones first, then those that other packages provide.

    >>> app_names()[:2]
    ['trending', 'stocks']
    """
    return [*APPS, *plugins.plugins(plugins.APPS, APPS)]


def app_of(name: str) -> App:
    """Return the app of that name. Raises `ValueError`, naming the existing ones.

    Other installed packages add apps through entry points of the group ``streamgauge.apps``. If one of these
    can't be loaded, is not an `App`, or has another name than its entry point, `PluginError` names the
    package.

    >>> app_of("iot").name
    'iot'
    """
    if name in APPS:
        plugins.warn_if_shadowed(plugins.APPS, name)
        own: App = importlib.import_module(f".{APPS[name]}", __package__).APP
        return own
    others = plugins.plugins(plugins.APPS, APPS)
    if name not in others:
        raise ValueError(f"{name!r} is not an app; there are {', '.join(app_names())}")
    from .app import App

    app = plugins.load_plugin(others[name])
    where = plugins.describe(others[name][0])
    if not isinstance(app, App):
        raise plugins.PluginError(f"{where} must be an App, got {app!r}")
    if app.name != name:
        raise plugins.PluginError(f"{where} must be an app of the same name, got {app.name!r}")
    return app
