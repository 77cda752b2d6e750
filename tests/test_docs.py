"""Every example in a docstring runs; `test_live_examples.py` runs those for a broker or Spark."""

from __future__ import annotations

import pytest

from .examples import examples, modules, needs_broker, needs_spark, run


@pytest.mark.parametrize("module", modules())
def test_examples_run(module: str) -> None:
    for docstring in examples(module):
        if not needs_broker(docstring) and not needs_spark(docstring):
            run(docstring)
