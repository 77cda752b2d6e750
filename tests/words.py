"""The law of words: identifiers and phrases that say nothing, and were common here, do not come back.

Run by ``make style``; prints where one stands, and ends with 1 if there is any.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BANNED = {"told", "tells", "telling", "asked", "found", "took", "settle", "settles", "settled"}
IN_SENTENCES = {"asked", "found", "took"}
"""Allowed in names of tests, which are sentences."""

FOREIGN = {"GROUP_ID_NOT_FOUND"}
"""Names of other libraries."""

PHRASES = {
    "are away": "are unreachable",
    "anew": "again",
    "as that of": "name the thing again",
    "as those of": "like the … of",
    "as without": "write a full clause",
    "come again": "be emitted again, be repeated",
    "comes again": "is emitted again, is repeated",
    "felled": "rejected",
    "give out": "emit",
    "given out": "emitted",
    "gives out": "emits",
    "go on": "continue, resume",
    "goes on": "continues, resumes",
    "going on": "continuing, resuming",
    "held against": "compared with",
    "in one go": "together",
    "is away": "is unreachable",
    "leaves you time": "name the time",
    "no row's": "carries no rows",
    "nobody's": "name the owner",
    "of a processor": "of CPU time",
    "of a time alike": "all runs active at the same time",
    "out of turn": "out of order",
    "over at once": "ended immediately",
    "reads on": "continues",
    "restores nothing": "has no state to restore",
    "says of nothing": "carries no …",
    "such as another": "for example …",
    "unless it is there": "if missing",
    "unless said": "by default",
    "unless they are there": "if missing",
    "wait themselves": "are buffered",
    "without a word": "silently",
    "what became of": "the outcome of",
    "what becomes of": "the outcome of",
    "what came of": "the result of",
    "what comes is": "the result is",
    "what comes of": "the result of",
    "what is said": "the message",
    "what is there now": "the data that exists now",
}
"""Refused in pages, docstrings and the command line's help, with what to write instead."""

PAGE_PHRASES = {
    "but for": "except",
    "handed over": "delivered, passed",
    "unless given": "by default",
    "unless named": "by default",
    "whoever": "anyone who",
}
"""Refused in pages besides, where a reader meets them first."""

ALL_PHRASES = PHRASES | PAGE_PHRASES

_TEXTS = re.compile(r"""//.*|^ *\*.*|/\*.*|"[^"]*"|'[^']*'|`[^`$]*`""")
"""Comments and texts of a line of JavaScript."""


def banned_names(path: Path) -> list[tuple[int, str]]:
    """The line and the name of each identifier of a file that has a banned word."""
    banned = rf"(?<![^\W_])(?:{'|'.join(BANNED)})"
    if path.suffix == ".js":
        names = _names_in_scripts(path)
    elif re.search(banned, path.read_text(encoding="utf-8"), re.IGNORECASE):
        names = _names(path)
    else:
        return []  # to split every file into tokens takes most of the time
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


def refused_phrases(path: Path) -> list[tuple[int, str]]:
    """The line where each text with a refused phrase begins, and the phrase; blocks of code are skipped."""
    source = path.read_text(encoding="utf-8")
    phrases = ALL_PHRASES if path.suffix == ".md" else PHRASES
    of_commands = "cli" in path.parts  # their strings may be in pieces, and a phrase in two of them
    if not of_commands and not _any_of(phrases).search(" ".join(source.split())):
        return []
    texts = _paragraphs(source) if path.suffix == ".md" else _strings(source, of_commands)
    return [
        (line, phrase)
        for line, text in texts
        if _any_of(phrases).search(joined := " ".join(text.split()))
        for phrase in phrases
        if re.search(rf"\b{phrase}\b", joined, re.IGNORECASE)
    ]


def _any_of(phrases: Iterable[str]) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(phrases)})\b", re.IGNORECASE)


def _paragraphs(page: str) -> Iterator[tuple[int, str]]:
    prose = re.sub(r"^```.*?^```", lambda block: "\n" * block[0].count("\n"), page, flags=re.M | re.S)
    for paragraph in re.finditer(r"(?:.+\n?)+", prose):
        yield prose.count("\n", 0, paragraph.start()) + 1, paragraph[0]


def _strings(source: str, every: bool) -> Iterator[tuple[int, str]]:
    """Docstrings, or every string: the command line's texts are its arguments' too."""
    for node in ast.walk(ast.parse(source)):
        value = node if every else node.value if isinstance(node, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield value.lineno, value.value


def main() -> int:
    """Print every banned name and refused phrase of the files that git tracks."""
    files = subprocess.run(
        ["git", "ls-files", "-z", "*.py", "*.js", ":!*.min.js"], cwd=ROOT, capture_output=True, check=True
    )
    wrong = [
        f"{name}:{line}: {word} is not a name here; say what the thing is (its rows, message, request …)"
        for name in files.stdout.decode().split("\0")
        if name
        for line, word in banned_names(ROOT / name)
    ]
    pages = subprocess.run(
        ["git", "ls-files", "-z", "*.md", "*.py", ":!tests"], cwd=ROOT, capture_output=True, check=True
    )
    wrong += [
        f"{name}:{line}: not {phrase!r}; write {ALL_PHRASES[phrase]!r}"
        for name in pages.stdout.decode().split("\0")
        if name
        for line, phrase in refused_phrases(ROOT / name)
    ]
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
