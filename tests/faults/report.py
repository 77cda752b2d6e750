"""The table of what was injected, how often, and what was checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from .episode import JOINED, SENT_AGAIN, SENT_ONCE, SHARED

CHECKED = {
    "exactly_once": "all counts equal; dead letters once each",
    "effectively_once": "all counts equal; no dead letter missing",
    "at_least_once": "no count less; no dead letter missing",
    "at_most_once": "no count more; no dead letter twice",
    JOINED: "all counts equal; dead letters once each",
    SHARED: "all counts of both equal; rows and dead letters once each",
    SENT_ONCE: "rows and dead letters once each",
    SENT_AGAIN: "no row and no dead letter missing",
}


def table(injected: Mapping[str, Counter[str]]) -> str:
    """A Markdown table: the faults, how often each was injected by kind of episode, and a line of sums."""
    names = sorted({name for counts in injected.values() for name in counts})
    lines = [
        f"| fault | {' | '.join(f'`{kind}`' for kind in injected)} |",
        f"|---|{'---:|' * len(injected)}",
    ]
    lines += [f"| {name} | {' | '.join(str(c[name] or '') for c in injected.values())} |" for name in names]
    lines.append(f"| **all** | {' | '.join(f'**{c.total()}**' for c in injected.values())} |")
    lines.append(f"| *checked* | {' | '.join(CHECKED[kind] for kind in injected)} |")
    return "\n".join(lines)
