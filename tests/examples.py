"""The examples of the package's docstrings, found and run.

Some need a broker at "localhost:9092", as users write it, or a session called `spark`.
"""

from __future__ import annotations

import doctest
import importlib
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FLOORS = ["sketches", "sampling", "operators", "spark_udafs", "queries", "agents", "apps"]
BROKER = "localhost:9092"


def modules() -> list[str]:
    return [_name(path) for path in _paths()]


def modules_with(text: str) -> list[str]:
    """The modules with a line of an example that has this text."""
    shown = re.compile(r"^ *(>>>|\.\.\.) .*" + re.escape(text), re.M)
    return [_name(path) for path in _paths() if shown.search(path.read_text())]


def _paths() -> list[Path]:
    above = [ROOT / "sql_query.py", ROOT / "stream.py", ROOT / "shared_runs.py"]
    paths = [*above, *(path for floor in FLOORS for path in (ROOT / floor).rglob("*.py"))]
    # The client of PostgreSQL is the one package that an older environment may lack.
    without = re.compile(r"^(import|from) psycopg\b", re.M) if find_spec("psycopg") is None else None
    return sorted(path for path in paths if without is None or not without.search(path.read_text()))


def _name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(["streamgauge", *parts]).removesuffix(".__init__")


def examples(module: str) -> list[doctest.DocTest]:
    """The docstrings of a module that have examples."""
    result = doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(module))
    return [docstring for docstring in result if docstring.examples]


def needs_broker(docstring: doctest.DocTest) -> bool:
    return any(BROKER in example.source for example in docstring.examples)


def needs_spark(docstring: doctest.DocTest) -> bool:
    return any(re.search(r"\bspark\b(?!_)", example.source) for example in docstring.examples)


def run(docstring: doctest.DocTest, names: dict[str, Any] | None = None, broker: str = BROKER) -> None:
    """Run one docstring's examples; the output of those that fail is the error."""
    for example in docstring.examples:
        example.source = example.source.replace(BROKER, broker)
    docstring.globs.update(names or {})
    collected: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(docstring, out=collected.append)
    assert not collected, "".join(collected)
