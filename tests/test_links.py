"""What the documentation points at is there: links, their anchors, pictures, and files named in the text."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from .cases import each

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
BY_PATHS = ["docs/architecture.md", "CONTRIBUTING.md", "NOTICE"]
"""Those that name files of the project in their text."""


@cache
def tokens(page: Path) -> list[Token]:
    """The blocks of a page, and what their lines consist of."""
    blocks = MarkdownIt("commonmark").enable("table").parse(page.read_text())
    return [token for block in blocks for token in (block, *(block.children or ()))]


def targets(page: Path) -> list[str]:
    """What its links and pictures point at."""
    pairs = ((token.attrGet("href"), token.attrGet("src")) for token in tokens(page))
    return [str(target) for pair in pairs for target in pair if target]


def anchors(page: Path) -> set[str]:
    """The anchors of its headings, as they are made of their text on sites for source code and by MkDocs."""
    blocks = tokens(page)
    texts = [blocks[at + 1] for at, token in enumerate(blocks) if token.type == "heading_open"]
    plain = ("".join(part.content for part in text.children or ()) for text in texts)
    return {re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", "-") for text in plain}


def broken(page: Path) -> list[str]:
    """Its relative links that lead nowhere."""
    result = []
    for target in targets(page):
        parts = urlsplit(target)
        if parts.scheme:
            continue
        file = (page.parent / unquote(parts.path)).resolve() if parts.path else page
        inside = file.is_relative_to(ROOT)
        if not (inside and file.exists()) or (parts.fragment and parts.fragment not in anchors(file)):
            result.append(target)
    return result


@each("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert broken(page) == []


def test_a_broken_link_and_a_broken_anchor_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    (tmp_path / "b.md").write_text("# Why `so`, and how?\n")
    links = ["b.md#why-so-and-how", "b.md#nope", "c.md", "https://example.org/x", "#none", "../away.md"]
    text = "".join(f"[x]({link})\n" for link in links) + "![a picture](p.svg)\n\n`[no](link.md)`\n"
    (tmp_path / "a.md").write_text(text)
    assert broken(tmp_path / "a.md") == ["b.md#nope", "c.md", "#none", "../away.md", "p.svg"]


def test_every_page_is_reached_from_the_first() -> None:
    reached, due = set[Path](), [ROOT / "README.md"]
    while due:
        page = due.pop()
        if page not in reached:
            reached.add(page)
            files = [(page.parent / urlsplit(target).path).resolve() for target in targets(page)]
            due += [file for file in files if file in PAGES]
    assert [str(page.relative_to(ROOT)) for page in PAGES if page not in reached] == []


@each("name", BY_PATHS)
def test_files_that_are_named_exist(name: str) -> None:
    """Those in code quotes, or, in NOTICE, at the beginning of lines; those with NAME are patterns."""
    text = (ROOT / name).read_text()
    named = (
        re.findall(r"^ {4}(\S+/\S+)", text, re.M)
        if name == "NOTICE"
        else re.findall(r"`([\w.]+(?:/[\w.]*)+)`", text)
    )
    paths = [path for path in named if "NAME" not in path and not path.startswith(("http", "make"))]
    assert len(paths) > 3
    floors = [
        ROOT,
        *(
            ROOT / floor
            for floor in ("sketches", "operators", "spark_udafs", "queries", "operators/consumer")
        ),
    ]
    assert [path for path in paths if not any((base / path).exists() for base in floors)] == []
