"""Kernels that only kernels call, compiled once: with the kernel that calls them, and not before it as well.

Numba optimises every function together with all that it calls and writes machine code for it, then does the
same for its caller: what lies five calls deep is optimised ten times and written five times, and all but the
last of that is thrown away. A function compiled by `LinkedCompiler` stays as it was lowered until the kernel
on top is optimised with all that it calls, which is what is written and cached. Two thirds of the time that
the quantile sketches needed to compile went that way.

Of Numba's inner classes this needs that a library of code is finished in two steps that can be left out
(`_optimize_final_module`, `_finalize_final_module`) and that lowering takes the library in its state.
`tests/sketches/core/test_jit.py` notices where a new version changes that.
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, _LowerResult
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering


class _Part(JITCodeLibrary):
    """Code to be linked into other code: neither optimised nor turned into machine code by itself."""

    def _optimize_functions(self, ll_module: Any) -> None:
        pass

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _LinkedLowering(NativeLowering):
    _name = "linked_lowering"

    def run_pass(self, state: Any) -> bool:
        state.flags = state.flags.copy()
        state.flags.no_compile = True
        state.library = _Part(state.targetctx.codegen(), state.func_id.func_qualname)
        super().run_pass(state)
        # Kernels know what they call by its entry point. This one is no way in for Python: it takes one
        # string and refuses all else with a TypeError.
        lowered, entry = state["cr"], state.library.__format__
        state.targetctx.insert_user_function(entry, lowered.fndesc, [state.library])
        state["cr"] = _LowerResult(lowered.fndesc, lowered.call_helper, cfunc=entry, env=lowered.env)
        return True


class LinkedCompiler(CompilerBase):
    """Numba's usual steps but for the last."""

    def define_pipelines(self) -> list[Any]:
        """The steps for a function without Python objects."""
        usual = DefaultPassBuilder.define_nopython_pipeline(self.state)
        usual.passes = [
            (_LinkedLowering if step is NativeLowering else step, why) for step, why in usual.passes
        ]
        usual._finalized = False
        usual.finalize()
        return [usual]
