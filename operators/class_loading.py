"""Classes by the place that a table names them by, so that reading the table imports nothing."""

from __future__ import annotations

import importlib
from typing import Any

from ..sketches.core.extras import naming_extras

ROOT = __package__.rpartition(".")[0]
"""The package that places begin below."""


def load_class(place: str) -> Any:
    """The class at ``"floor.folder:Class"``, whose module is imported now.

    >>> load_class("operators.windows.hopping:Hopping").kind
    'hopping'
    """
    module, name = place.split(":")
    with naming_extras():
        return getattr(importlib.import_module(f"{ROOT}.{module}"), name)
