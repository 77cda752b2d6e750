"""Check for the undocumented parts of Numba that kernels use, before they are used.

`missing` names what another version of Numba lacks. If `numba_linking` can't work, inner kernels are compiled
like any Numba function: the same code after a longer wait. If `kernel_cache` can't work, kernels are stored
in Numba's own cache, which recompiles more often than necessary. Answers and bytes are the same.
"""

from __future__ import annotations

import importlib
import logging
from functools import cache

LINKING = {
    "numba.core.codegen:JITCodeLibrary": (
        "_optimize_functions",
        "_optimize_final_module",
        "_finalize_final_module",
        "_finalize_dynamic_globals",
    ),
    "numba.core.compiler:_LowerResult": ("fndesc", "call_helper", "cfunc", "env"),
    "numba.core.compiler:DefaultPassBuilder": ("define_nopython_pipeline",),
    "numba.core.typed_passes:NativeLowering": ("run_pass",),
    "numba.core.compiler_machinery:register_pass": (),
}
"""What `numba_linking` depends on."""

CACHE = {
    "numba.core.caching:_Cache": ("load_overload", "save_overload", "enable", "disable", "flush"),
    "numba.core.compiler:CompileResult": ("_reduce", "_rebuild"),
    "numba.core.dispatcher:Dispatcher": ("enable_caching",),
    "numba.core.serialize:dumps": (),
}
"""What `kernel_cache` depends on."""


def missing(needed: dict[str, tuple[str, ...]]) -> list[str]:
    """Return which of these this version of Numba lacks.

    >>> missing({"numba:njit": (), "numba:njut": (), "numba.core.caching:_Cache": ("flush", "flash")})
    ['numba:njut', 'numba.core.caching:_Cache.flash']
    """
    names: list[str] = []
    for place, attributes in needed.items():
        module, name = place.split(":")
        try:
            inside = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            names.append(place)
        else:
            names += [f"{place}.{one}" for one in attributes if not hasattr(inside, one)]
    return names


@cache
def usable(what: str) -> bool:
    """Whether ``"linking"`` or the ``"cache"`` has what it needs; warns once if not."""
    names = missing(LINKING if what == "linking" else CACHE)
    if names:
        import numba

        logging.getLogger(__name__).warning(
            "Numba %s has no %s: kernels take longer to compile; the versions in pyproject.toml have it",
            numba.__version__,
            ", ".join(names),
        )
    return not names
