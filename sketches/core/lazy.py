"""NumPy, Polars, PyArrow and HTTPX, each loaded when something of it is first used.

For the modules that saying what a stream asks imports: together the first three take three times as long to
load as all of ours, and a command's help, or a module that only names streams, needs none of them. Modules
that hold kernels import what they need as usual.
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
        """Stands for a module until an attribute is wanted, which it then keeps."""

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
