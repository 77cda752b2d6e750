"""Every example in a docstring runs; `test_live_examples.py` runs those for a broker or Spark."""

from __future__ import annotations

from .cases import each
from .examples import examples, modules, needs_broker, needs_spark, run


def room(module: str) -> str:
    """Its folder, of at most two levels: one test for each can be chosen by name."""
    return ".".join(module.split(".")[1:-1][:2]) or "streamgauge"


@each("module", modules(), by=room)
def test_examples_run(module: str) -> None:
    for docstring in examples(module):
        if not needs_broker(docstring) and not needs_spark(docstring):
            run(docstring)
