"""NumPy, Polars, PyArrow and HTTPX, each loaded on first use.

This is for modules that are imported to define streams: the first three together take three times as long to
load as all of our modules, and a command's help, or a module that only defines streams, needs none of them.
Modules with kernels import what they need as usual.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["httpx", "np", "pa", "pc", "pl", "pq"]

if TYPE_CHECKING:
    import httpx
    import numpy as np
    import polars as pl
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
else:

    class _LazyModule(ModuleType):
        """A stand-in for a module that loads it on first access and caches its attributes."""

        def __getattr__(self, name: str) -> Any:
            value = getattr(importlib.import_module(self.__name__), name)
            if not name.startswith("__"):
                setattr(self, name, value)
            return value

        def __dir__(self) -> list[str]:
            return dir(importlib.import_module(self.__name__))

        def __reduce__(self) -> tuple[Any, ...]:
            return importlib.import_module, (self.__name__,)

    httpx, np, pa, pc, pl, pq = map(
        _LazyModule, ("httpx", "numpy", "pyarrow", "pyarrow.compute", "polars", "pyarrow.parquet")
    )
