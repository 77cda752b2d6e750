"""The one law of words: identifiers that say nothing, and had a dozen meanings here, do not come back.

Run by ``make style``; prints where one stands, and ends with 1 if there is any.
"""

from __future__ import annotations

import subprocess
import sys
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BANNED = {"told", "asked", "found", "took", "settle"}
FOREIGN = {"GROUP_ID_NOT_FOUND"}
"""Names of other libraries."""


def banned_names(path: Path) -> list[tuple[int, str]]:
    """The line and the name of each identifier of a file that has a banned word, names of tests apart."""
    with tokenize.open(path) as file:
        tokens = [token for token in tokenize.generate_tokens(file.readline) if token.type == tokenize.NAME]
    return [
        (token.start[0], token.string)
        for token in tokens
        if BANNED & set(token.string.lower().split("_"))
        and token.string not in FOREIGN
        and not token.string.startswith("test_")
    ]


def main() -> int:
    """Print every banned name of the files that git tracks."""
    files = subprocess.run(["git", "ls-files", "-z", "*.py"], cwd=ROOT, capture_output=True, check=True)
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
