"""Compile inner kernels only once, together with the kernel that calls them.

Numba optimises every function together with everything that it calls and generates machine code for it, then
does the same for its caller: a function five calls deep is optimised ten times and generated five times, and
all but the last result is discarded. A function compiled by `LinkedCompiler` remains unoptimised LLVM code
until the outermost kernel is optimised with everything that it calls; only that is generated and cached. This
saved two thirds of the compile time of the quantile sketches.

This depends on two internals of Numba: a code library is finished in two steps that can be skipped
(`_optimize_final_module`, `_finalize_final_module`), and lowering uses the library in its state.
`tests/sketches/core/compilation/test_jit.py` notices if a new version changes these.
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, _LowerResult
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering


class _Part(JITCodeLibrary):
    """Code to be linked into other code: it is not optimised or compiled to machine code by itself."""

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
        # Kernels identify a callee by its entry point. This one can't be called from Python: it accepts one
        # string and refuses anything else with a TypeError.
        lowered, entry = state["cr"], state.library.__format__
        state.targetctx.insert_user_function(entry, lowered.fndesc, [state.library])
        state["cr"] = _LowerResult(lowered.fndesc, lowered.call_helper, cfunc=entry, env=lowered.env)
        return True


class LinkedCompiler(CompilerBase):
    """Numba's usual steps without the last."""

    def define_pipelines(self) -> list[Any]:
        """Return the steps for a function without Python objects."""
        usual = DefaultPassBuilder.define_nopython_pipeline(self.state)
        usual.passes = [
            (_LinkedLowering if step is NativeLowering else step, why) for step, why in usual.passes
        ]
        usual._finalized = False
        usual.finalize()
        return [usual]
