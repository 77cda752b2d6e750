"""Draw the results of `curves` as SVG pictures: ``python -m bench.draw_curves RESULTS.jsonl FOLDER``.

One picture for each curve: CPU time of a message and peak memory, by engine. The same results give the same
bytes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

COLORS = {"streamgauge": "#2456a6", "Flink": "#c4562e", "Kafka Streams": "#6b7280"}
UNITS = [("spent", 1, "CPU time per message, ns"), ("peak", 1e-6, "peak memory, MB")]
LABELS = {
    "keys_zipf": "keys, by Zipf's law",
    "overlap": "windows of a minute that a message is in",
    "session_gap_s": "gap of sessions, s",
    "message_bytes": "bytes of a message",
    "late_percent": "late messages, %",
}


def compact(number: float) -> str:
    """A number that is short enough for an axis.

    >>> [compact(n) for n in (50, 5_000, 100_000, 10_000_000)]
    ['50', '5 k', '100 k', '10 M']
    """
    for unit, size in (("M", 1_000_000), ("k", 1_000)):
        if number >= size:
            return f"{number / size:,.12g} {unit}"
    return f"{number:,}"


def read(path: Path) -> dict[str, list[dict[str, Any]]]:
    """The results by curve, in their order; for each point and engine the one with the least CPU time.

    Raises `ValueError` if there are none.
    """
    best: dict[tuple[str, str, str], dict[str, Any]] = {}
    for text in path.read_text().splitlines():
        record = json.loads(text)
        key = record["curve"], json.dumps(record["value"]), record["engine"]
        if "spent" in record and (key not in best or record["spent"] < best[key]["spent"]):
            best[key] = record
    if not best:
        raise ValueError(f"{path}: no result in it can be drawn")
    result: dict[str, list[dict[str, Any]]] = {}
    for record in best.values():
        result.setdefault(record["curve"], []).append(record)
    return result


def series(
    records: list[dict[str, Any]], unit: str, factor: float
) -> dict[str, tuple[list[Any], list[float]]]:
    """Each engine's values of the variable, and what it needed there."""
    result: dict[str, tuple[list[Any], list[float]]] = {}
    for record in records:
        values, costs = result.setdefault(record["engine"], ([], []))
        values.append(record["value"])
        costs.append(record[unit] * factor)
    return result


def draw(curve: str, records: list[dict[str, Any]], to: Path) -> None:
    """Write one curve's picture."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    numbers = all(isinstance(record["value"], (int, float)) for record in records)
    values = [*dict.fromkeys(record["value"] for record in records)]
    with pyplot.rc_context({"svg.hashsalt": curve, "svg.fonttype": "none", "font.size": 9}):
        figure, axes = pyplot.subplots(1, 2, figsize=(8, 3), layout="constrained")
        for axis, (unit, factor, label) in zip(axes, UNITS):
            shown = series(records, unit, factor)
            for number, (engine, (points, costs)) in enumerate(shown.items()):
                if numbers:
                    axis.plot(points, costs, marker="o", label=engine, color=COLORS.get(engine))
                else:  # a line would say that there is something between two formats
                    width = 0.8 / len(shown)
                    at = [values.index(point) + width * (number - (len(shown) - 1) / 2) for point in points]
                    axis.bar(at, costs, width, label=engine, color=COLORS.get(engine))
            if numbers and min(values) > 0 and max(values) >= 10 * min(values):
                axis.set_xscale("log")
            axis.set_xticks(values if numbers else range(len(values)))
            axis.set_xticklabels([compact(own) if numbers else str(own) for own in values])
            axis.minorticks_off()
            axis.set_ylim(bottom=0)
            axis.yaxis.set_major_formatter("{x:,.0f}")
            axis.set_title(label, fontsize=9)
            axis.set_xlabel(LABELS.get(curve, curve.replace("_", " ")))
            axis.grid(alpha=0.3)
            axis.set_axisbelow(True)
        axes[0].legend(frameon=False)
        figure.savefig(to, format="svg", metadata={"Date": None, "Creator": None})
        pyplot.close(figure)


def main(arguments: list[str]) -> None:
    """Draw all curves of a file of results."""
    if len(arguments) != 2:
        raise SystemExit("usage: python -m bench.draw_curves RESULTS.jsonl FOLDER")
    folder = Path(arguments[1])
    folder.mkdir(parents=True, exist_ok=True)
    for curve, records in read(Path(arguments[0])).items():
        draw(curve, records, folder / f"curve-{curve.replace('_', '-')}.svg")
        print(folder / f"curve-{curve.replace('_', '-')}.svg")


if __name__ == "__main__":
    main(sys.argv[1:])
