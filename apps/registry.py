"""The apps that the command line knows, by name: each a line here, loaded when it is asked for."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .app import App

APPS = {
    "trending": "trending.app",
    "stocks": "stocks.app",
    "supernova": "supernova.app",
    "iot": "iot.app",
    "logs": "logs.app",
}


def app_of(name: str) -> App:
    """The app of that name. Raises `ValueError`, naming those that there are.

    >>> app_of("iot").name
    'iot'
    """
    if name not in APPS:
        raise ValueError(f"{name!r} is not an app; there are {', '.join(APPS)}")
    found: App = importlib.import_module(f".{APPS[name]}", __package__).APP
    return found
