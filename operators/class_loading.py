"""Classes named by import paths in tables, so that reading a table imports nothing."""

from __future__ import annotations

import importlib
from typing import Any

from ..sketches.core.extras import naming_extras

ROOT = __package__.rpartition(".")[0]
"""The package that import paths are relative to."""


def load_class(place: str) -> Any:
    """Import the module of ``"floor.folder:Class"`` and return the class.

    >>> load_class("operators.windows.hopping:Hopping").kind
    'hopping'
    """
    module, name = place.split(":")
    with naming_extras():
        return getattr(importlib.import_module(f"{ROOT}.{module}"), name)
