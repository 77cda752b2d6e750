"""Fill the kernels' cache: ``python -m streamgauge.operators.warm``, run once by the set-up.

Numba compiles a kernel when it is first called and keeps it on disk; this calls each family's kernels once,
for each kind of column it takes, so that no user waits for the compiler.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from .families import FAMILIES, Family

COLUMNS = {
    "longs": pa.array(np.arange(4096) % 1000),
    "doubles": pa.array(np.linspace(-1.0, 1.0, 4096)),
    "strings": pa.array([str(i % 1000) for i in range(4096)]),
    "wide strings": pa.array([str(i % 1000) for i in range(4096)], pa.large_string()),
}


def steps() -> Iterator[tuple[str, Family, pa.Array]]:
    """What there is to compile: each family with each column it takes."""
    for family in FAMILIES.values():
        for name, column in COLUMNS.items():
            try:
                family.of_column(column.type)
            except TypeError:
                continue
            yield f"{family.name} of {name}", family, column


def exercise(family: Family, column: pa.Array) -> None:
    """Call everything that compiles: updates of one group and of many, bytes, merges."""
    params: dict[str, Any] = {**family.params, **family.of_column(column.type)}
    if "type" in params:
        params["type"] = column.type
    inputs = {name: np.arange(len(column), dtype=np.int64) for name in family.inputs}
    for n in (1, 3):
        groups = family.groups_class()(n, **params)
        numbers = np.arange(len(column), dtype=np.int64) % n
        groups.update(numbers, column, **inputs)
        groups.update(numbers[:8], column[:8], **{name: rows[:8] for name, rows in inputs.items()})
        groups.merge(np.arange(n), groups.to_arrow())
    if not family.exact:
        sketch: Any = family.sketch_class()(**params)
        for rows in (len(column), 3):
            sketch.update(column[:rows], **{name: values[:rows] for name, values in inputs.items()})
        if not inputs:  # a batch of many values may have a kernel of its own
            sketch.update(pa.concat_arrays([column] * 16))
        sketch.merge(sketch.copy()).answer()


def main() -> None:
    """Compile all, with a progress line."""
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    todo = list(steps())
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns) as progress:
        task = progress.add_task("compiling kernels", total=len(todo))
        for name, family, column in todo:
            progress.update(task, description=f"compiling kernels once: {name}", advance=1)
            exercise(family, column)
        progress.update(task, description="kernels compiled")


if __name__ == "__main__":
    main()
