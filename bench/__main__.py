"""Run the benchmarks and print their table: ``python -m bench [--list] [WORD...]``."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bench.processor import head

HERE = Path(__file__).parent
NO_SCRIPTS = {
    "__main__",
    "columns",
    "compiled",
    "connector",
    "curve_topics",
    "draw_curves",
    "engines",
    "java_peers",
    "ksqldb_tests",
    "labelled_logs",
    "measure",
    "processor",
    "public_captures",
    "topic",
}
LONG = {"curves", "latency"}
"""Scripts that report their progress."""
COLUMNS = ["claim", "ours", "peer", "ratio", "target"]
RUN = """
import importlib, json, sys
print(json.dumps(importlib.import_module(sys.argv[1]).main(), default=str))
"""


def scripts(words: list[str]) -> list[str]:
    """The names of the benchmark modules that hold one of the words, or all."""
    names = [module.name for module in pkgutil.iter_modules([str(HERE)]) if module.name not in NO_SCRIPTS]
    return [name for name in names if not words or any(word in name for word in words)]


def main(words: list[str]) -> int:
    """Each script in a process of its own, so that none inherits another's threads and caches.

    With ``--list`` their names are printed, and none runs.
    """
    if words[:1] == ["--list"]:
        print("\n".join(scripts(words[1:])))
        return 0
    console = Console(width=max(Console().width, 120) if not sys.stdout.isatty() else None)
    console.print(head(), highlight=False)
    failed = 0
    for name in scripts(words):
        with console.status(f"running {name}"):
            done = subprocess.run(
                [sys.executable, "-c", RUN, f"bench.{name}"],
                cwd=HERE.parent,
                stdout=subprocess.PIPE,
                stderr=None if name in LONG else subprocess.PIPE,
                text=True,
            )
        if done.returncode:
            failed += 1
            console.print(f"[red]{name} failed[/]\n{escape((done.stderr or '')[-3000:])}")
            continue
        if done.stderr and done.stderr.strip():
            console.print(f"[yellow]{escape(done.stderr.strip()[-1000:])}[/]")
        table = Table(title=name, title_justify="left", title_style="bold")
        for column in COLUMNS:
            table.add_column(column, justify="left" if column == "claim" else "right")
        for row in json.loads(done.stdout.rstrip().splitlines()[-1]):
            table.add_row(*(str(row.get(column, "")) for column in COLUMNS))
        console.print(table)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
