"""What compiling costs in a fresh environment: the first call of each family, and each kernel.

Reported in units of a Python loop of 20 million additions, both in seconds of processor time and taking
turns. Only the total on all cores is in seconds of the clock, so it needs a quiet machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

from bench.compiled import UNIT, compilations, loop
from bench.measure import line
from bench.processor import cores

KERNELS_REPORTED = 50
HERE = "bench.compile_times"


def family(name: str) -> dict[str, Any]:
    """Run in a process with an empty cache: the first update of a family, then everything it can compile."""
    from streamgauge.operators.families import FAMILIES
    from streamgauge.operators.warm_up import steps

    of = FAMILIES[name]
    columns = [column for column in steps.COLUMNS.values() if steps.accepts(of, column.type)]
    params: dict[str, Any] = {**of.params, **of.of_column(columns[0].type)}
    if "type" in params:
        params["type"] = columns[0].type
    values = columns[0].to_numpy()
    inputs = dict.fromkeys(of.inputs, values)
    sketch: Any = of.groups_class()(1, **params) if of.exact else of.sketch_class()(**params)
    with compilations() as result:
        if of.exact:
            sketch.update(values * 0, columns[0], **inputs)
        else:
            sketch.update(columns[0], **inputs)
        first, kernels = result.seconds, len(result.kernels)
        steps.exercise(name)
        whole = result.seconds
    return {"first": first, "kernels": kernels, "all": whole, "unit": result.unit}


def everything() -> dict[str, Any]:
    """Run in a process with an empty cache: all families, one after another."""
    from streamgauge.operators.warm_up.steps import steps

    with compilations() as result:
        for step in steps():
            step.run()
        whole = result.seconds
    return {"all": whole, "unit": result.unit, "kernels": result.kernels}


def fresh(*words: str) -> str:
    """What a process that finds no compiled kernel prints."""
    with tempfile.TemporaryDirectory() as empty:
        done = subprocess.run(
            [sys.executable, *words],
            env={**os.environ, "NUMBA_CACHE_DIR": empty, "STREAMGAUGE_CACHE": empty},
            capture_output=True,
            text=True,
        )
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)} failed: {done.stderr[-2000:]}")
    return done.stdout


def measured(*words: str) -> dict[str, Any]:
    """The last line of this script's own output in a fresh process."""
    return json.loads(fresh("-m", HERE, *words).splitlines()[-1])


def first_call(name: str) -> dict[str, Any]:
    """The line of one family."""
    result = measured("family", name)
    first, unit = result["first"], result["unit"]
    ours = f"{first:.2f} s, {result['kernels']} kernels; all it has {result['all'] / unit:.1f} ×"
    return line(f"first update, nothing compiled: {name}", ours, _shown(unit), first / unit, "≤ 2.5")


def _shown(unit: float) -> str:
    return f"20 M additions {unit:.2f} s"


def all_cores() -> dict[str, Any]:
    """The line of the command that compiles everything, in seconds of the clock."""
    clock = time.perf_counter
    start = clock()
    fresh("-c", "from streamgauge.apps.cli.program import main; main()", "env", "warm")
    between = clock()
    loop(UNIT)
    unit, elapsed = clock() - between, between - start
    return line(f"all families, {cores()} cores", f"{elapsed:.0f} s", _shown(unit), elapsed / unit, "≤ 60")


def by_kernel(compiled: list[tuple[str, float]], unit: float) -> list[dict[str, Any]]:
    """The kernels that cost most, without those they call, all signatures together."""
    totals: dict[str, list[float]] = {}
    for name, seconds in compiled:
        totals.setdefault(name, []).append(seconds)
    dearest = sorted(totals.items(), key=lambda item: -sum(item[1]))
    rows = [
        line(f"compile {name}", f"{sum(times):.2f} s", f"signatures: {len(times)}", sum(times) / unit)
        for name, times in dearest[:KERNELS_REPORTED]
    ]
    rest = [sum(times) for _, times in dearest[KERNELS_REPORTED:]]
    return [*rows, line(f"compile the other {len(rest)}", f"{sum(rest):.2f} s", "", sum(rest) / unit)]


def main() -> list[dict[str, Any]]:
    """The table; a family's name after ``python -m bench.compile_times`` gives its two figures alone."""
    from streamgauge.operators.families import FAMILIES

    rows = [first_call(name) for name in FAMILIES]
    result = measured("everything")
    whole, unit = result["all"], result["unit"]
    rows += [line("all families, one core", f"{whole:.0f} s", _shown(unit), whole / unit), all_cores()]
    return rows + by_kernel(result["kernels"], unit)


if __name__ == "__main__":
    print(json.dumps(everything() if sys.argv[1] == "everything" else family(sys.argv[2])))
