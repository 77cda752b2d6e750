"""Draw the README's first commands and their output as a terminal: ``python docs/_site/terminal.py``.

The result, ``docs/pictures/terminal.svg``, is animated by its own style sheet and fetches nothing.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs" / "pictures" / "terminal.svg"
SHOWN = re.compile(r"^```bash\n(.*?)^```\n\n```text\n(.*?)^```", re.M | re.S)
LINE, CHARACTER, MARGIN, HEAD = 19, 8.05, 16, 30
COMMAND_SECONDS, OUTPUT_SECONDS = 1.6, 0.05
STYLE = """text{font:13.5px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;
fill:#d7dde5;white-space:pre}.c{fill:#8fd3a8}g.l{animation:a .01s both}
@keyframes a{from{opacity:0}to{opacity:1}}
@media (prefers-reduced-motion:reduce){g.l{animation:none}}"""


def lines_of(page: str) -> list[tuple[float, bool, str]]:
    """When each line appears, whether it is a command, and its text."""
    lines, at = [], 0.6
    for commands, output in SHOWN.findall(page):
        for command in commands.splitlines():
            lines.append((at, True, f"$ {command}"))
            at += COMMAND_SECONDS / 2
        at += COMMAND_SECONDS / 2
        for line in output.splitlines():
            lines.append((at, False, line))
            at += OUTPUT_SECONDS
        lines.append((at, False, ""))
        at += COMMAND_SECONDS
    return lines[:-1]


def drawn(page: str) -> str:
    """The picture of a page's commands, as SVG."""
    lines = lines_of(page)
    width = round(max(len(text) for _, _, text in lines) * CHARACTER + 2 * MARGIN)
    height = HEAD + len(lines) * LINE + MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        f"<title>{escape(lines[0][2])}</title><style>{STYLE}</style>",
        f'<rect width="{width}" height="{height}" rx="8" fill="#171b22"/>',
        *(f'<circle cx="{18 + 18 * n}" cy="16" r="5" fill="#4a5361"/>' for n in range(3)),
    ]
    for number, (at, is_command, text) in enumerate(lines):
        if text:
            y = HEAD + (number + 1) * LINE - 5
            kind = ' class="c"' if is_command else ""
            parts.append(
                f'<g class="l" style="animation-delay:{at:.2f}s"><text x="{MARGIN}" y="{y}"{kind} '
                f'xml:space="preserve">{escape(text)}</text></g>'
            )
    return "\n".join([*parts, "</svg>", ""])


def first_commands() -> str:
    """The README's section on a file."""
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    return page[page.index("## Start with a file") : page.index("## How fast")]


if __name__ == "__main__":
    PICTURE.write_text(drawn(first_commands()), encoding="utf-8")
