"""Draw the floors, their rooms and who imports whom: ``python docs/_site/house.py``.

The result, ``docs/pictures/house.svg``, is read from the imports of the real modules. A line joins a room to
one on its left from which it imports; lines that follow from others are left out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from html import escape
from pathlib import Path

from streamgauge.tests.test_house import FLOORS, imports_of

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs" / "pictures" / "house.svg"
WIDTH, LEFT, BOX, HIGH, GAP, STEP = 1500, 172, 108, 28, 6, 120
STYLE = """text{font:11px sans-serif;fill:#222}.f{font-size:15px;font-weight:bold}.n{fill:#555;font-size:10px}
.b{fill:#f6f7f9;stroke:#d5d9df}.r{fill:#eef4fb;stroke:#3b6ea5}path{fill:none;stroke:#3b6ea5;stroke-opacity:.4}"""
Rooms = dict[str, set[str]]


def modules(floor: str) -> list[Path]:
    """A floor's modules."""
    return sorted((ROOT / floor).rglob("*.py"))


def room_of(parts: tuple[str, ...]) -> str:
    """A module's room: the folder below its floor, or the module itself if it lies beside the folders."""
    return parts[1].removesuffix(".py") if len(parts) > 1 else ""


def read(floor: str) -> tuple[Rooms, Counter[str], Counter[str]]:
    """What each room imports of its own floor, its lines, and how often the floor imports from each floor."""
    rooms, lines, below = defaultdict[str, set[str]](set), Counter[str](), Counter[str]()
    for path in modules(floor):
        own = room_of(path.relative_to(ROOT).parts)
        lines[own] += len(path.read_text().splitlines())
        for name in imports_of(path):
            parts = tuple(name.split("."))
            if parts[0] == floor and (other := room_of(parts)) != own:
                rooms[own].add(other)
            elif parts[0] in FLOORS and parts[0] != floor:
                below[parts[0]] += 1
    return {room: rooms[room] for room in lines if room != "__init__"}, lines, below


def depths(rooms: Mapping[str, set[str]]) -> dict[str, int]:
    """Each room's distance from those that import no other."""
    known: dict[str, int] = {}

    def depth(room: str) -> int:
        if room not in known:
            known[room] = 1 + max((depth(one) for one in rooms[room] if one in rooms), default=-1)
        return known[room]

    return {room: depth(room) for room in rooms}


def direct(rooms: Mapping[str, set[str]]) -> list[tuple[str, str]]:
    """The imports that don't follow from others."""

    def reached(room: str) -> set[str]:
        return {two for one in rooms[room] if one in rooms for two in (one, *reached(one))}

    further = {room: {two for one in rooms[room] if one in rooms for two in reached(one)} for room in rooms}
    return sorted((room, one) for room in rooms for one in rooms[room] - further[room] if one in rooms)


def drawn() -> str:
    """The picture, as SVG."""
    parts, top = [], 12
    for floor in reversed(FLOORS):
        rooms, lines, below = read(floor)
        columns = defaultdict[int, list[str]](list)
        for room, depth in sorted(depths(rooms).items()):
            columns[depth].append(room)
        height = max(68 + 12 * len(below), max(map(len, columns.values())) * (HIGH + GAP) + 2 * GAP)
        places = {
            room: (
                LEFT + depth * STEP,
                top + (height - len(some) * (HIGH + GAP) + GAP) / 2 + n * (HIGH + GAP),
            )
            for depth, some in columns.items()
            for n, room in enumerate(some)
        }
        parts.append(
            f'<rect x="8" y="{top}" width="{WIDTH - 16}" height="{height}" rx="8" class="b"/>'
            f'<text x="20" y="{top + 24}" class="f">{floor}/</text>'
            f'<text x="20" y="{top + 40}" class="n">{lines.total():,} lines</text>'
        )
        for number, (other, count) in enumerate(below.most_common()):
            parts.append(
                f'<text x="20" y="{top + 56 + 12 * number}" class="n">{count} imports from {other}</text>'
            )
        for room, other in direct(rooms):
            (x, y), (left, low) = places[room], places[other]
            left, y, low = left + BOX, y + HIGH / 2, low + HIGH / 2
            parts.append(f'<path d="M{left} {low}C{left + 20} {low} {x - 20} {y} {x} {y}"/>')
        for room, (x, y) in places.items():
            parts.append(
                f'<rect x="{x}" y="{y}" width="{BOX}" height="{HIGH}" rx="4" class="r"/>'
                f'<text x="{x + 6}" y="{y + 13}">{escape(room)}</text>'
                f'<text x="{x + 6}" y="{y + 25}" class="n">{lines[room]:,}</text>'
            )
        top += height + 10
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" role="img">'
        f"<title>The floors, their rooms, and who imports whom</title><style>{STYLE}</style>"
        f'<rect width="{WIDTH}" height="{top}" fill="#fff"/>'
    )
    return "\n".join([head, *parts, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(drawn())
