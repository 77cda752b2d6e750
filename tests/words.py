"""The one law of words: identifiers that say nothing, and had a dozen meanings here, do not come back.

Run by ``make style``; prints where one stands, and ends with 1 if there is any.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BANNED = {"told", "tells", "telling", "asked", "found", "took", "settle", "settles", "settled"}
IN_SENTENCES = {"asked", "found", "took"}
"""Allowed in names of tests, which are sentences."""

FOREIGN = {"GROUP_ID_NOT_FOUND"}
"""Names of other libraries."""

_TEXTS = re.compile(r"""//.*|^ *\*.*|/\*.*|"[^"]*"|'[^']*'|`[^`$]*`""")
"""Comments and texts of a line of JavaScript."""


def banned_names(path: Path) -> list[tuple[int, str]]:
    """The line and the name of each identifier of a file that has a banned word."""
    names = _names_in_scripts(path) if path.suffix == ".js" else _names(path)
    return [(line, name) for line, name, words in names if words & BANNED and name not in FOREIGN]


def _names(path: Path) -> Iterator[tuple[int, str, set[str]]]:
    with tokenize.open(path) as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type == tokenize.NAME:
                words = set(token.string.lower().split("_"))
                is_test = token.string.startswith("test_")
                yield token.start[0], token.string, words - IN_SENTENCES if is_test else words


def _names_in_scripts(path: Path) -> Iterator[tuple[int, str, set[str]]]:
    for line, text in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        for name in re.findall(r"\w+", _TEXTS.sub("", text)):
            yield line, name, {word.lower() for word in re.findall(r"[A-Z]?[a-z]+", name)}


def main() -> int:
    """Print every banned name of the files that git tracks."""
    files = subprocess.run(
        ["git", "ls-files", "-z", "*.py", "*.js", ":!*.min.js"], cwd=ROOT, capture_output=True, check=True
    )
    wrong = [
        f"{name}:{line}: {word} is not a name here; say what the thing is (its rows, message, request …)"
        for name in files.stdout.decode().split("\0")
        if name
        for line, word in banned_names(ROOT / name)
    ]
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
