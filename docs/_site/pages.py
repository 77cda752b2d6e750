"""For the site: pages made of the README and its companions, and of the public names' docstrings.

MkDocs calls the functions here by their names (`hooks` in mkdocs.yml).
"""

from __future__ import annotations

import ast
import re
import shutil
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "build" / "site-sources" / "streamgauge"
"""The package's sources in a folder of its own name, as the reader of docstrings needs them."""

BESIDE = {"README.md": "index.md", "CONTRIBUTING.md": "CONTRIBUTING.md", "CHANGELOG.md": "CHANGELOG.md"}
"""Pages that stand at the repository's root, and their names in the site."""


MODULES = ("errors", "formats", "rules", "spark", "stored")
FLOORS = ["sketches", "sampling", "operators", "spark_udafs", "queries", "agents", "apps"]


def on_startup(**_: Any) -> None:
    """Copy the sources: the reader of docstrings looks for their folder when it is configured."""
    shutil.rmtree(SOURCES, ignore_errors=True)
    folders = [ROOT / name for name in (*FLOORS, *MODULES)]
    modules = [*ROOT.glob("*.py"), *(path for folder in folders for path in folder.rglob("*.py"))]
    for path in modules:
        copy = SOURCES / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)


def on_config(config: Any) -> Any:
    """List the pages of docstrings in the navigation."""
    pages = ["api/index.md", *(f"api/{room}.md" for room in public_names())]
    config["nav"] = [{"API": pages} if entry == {"API": "api/"} else entry for entry in config["nav"]]
    return config


def on_files(files: Files, *, config: Any) -> Files:
    """Add the pages from the root, and one of docstrings for each room with public names."""
    for name, uri in BESIDE.items():
        text = re.sub(r"(\]\(|src=\")docs/", r"\1", (ROOT / name).read_text())
        text = re.sub(r"\]\((?:LICENSE|NOTICE)\)", "](https://www.apache.org/licenses/LICENSE-2.0)", text)
        files.append(File.generated(config, uri, content=re.sub(r"\]\(README\.md", "](index.md", text)))
    rooms = public_names()
    for room, names in rooms.items():
        files.append(File.generated(config, f"api/{room}.md", content=page(room, names)))
    lines = [f"- [{title(room)}]({room}.md): `{'`, `'.join(names)}`\n" for room, names in rooms.items()]
    text = "# API\n\nAll public names, by what they are for.\n\n" + "".join(lines)
    files.append(File.generated(config, "api/index.md", content=text))
    return files


def on_post_build(*, config: Any) -> None:
    """Remove the copy, which a type checker would take for part of the package."""
    shutil.rmtree(SOURCES.parent)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Lead links to pages at the root to where they are in the site."""
    for name, uri in BESIDE.items():
        markdown = markdown.replace(f"](../{name}", f"]({uri}")
    return markdown


def public_names() -> dict[str, dict[str, str]]:
    """What is public, by the page it stands on: each name and where it is defined.

    The public modules have a page each; the root's names are on pages by the room in which they are defined.
    """
    pages: dict[str, dict[str, str]] = {}
    for name, target in imported(ROOT / "__init__.py").items():
        parts = target.split(".")
        if len(parts) == 1:
            module = ROOT / f"{name}.py"
            pages[name] = imported(module if module.exists() else ROOT / name / "__init__.py")
            continue
        room = "-".join(parts[: 2 if parts[0] == "operators" and len(parts) > 3 else 1])
        pages.setdefault(room, {})[name] = target
    return dict(sorted(pages.items()))


def imported(path: Path) -> dict[str, str]:
    """The names that a module imports from within the package, and their dotted places in it."""
    package = path.relative_to(ROOT).parts[:-1]
    result = {}
    tree = ast.parse(path.read_text())
    branches = [node.body for node in tree.body if isinstance(node, ast.If)]
    for node in [*tree.body, *(node for branch in branches for node in branch)]:
        if isinstance(node, ast.ImportFrom) and node.level:
            above = package[: len(package) - node.level + 1]
            for alias in node.names:
                place = [*above, *(node.module.split(".") if node.module else []), alias.name]
                result[alias.asname or alias.name] = ".".join(place)
    return result


def title(page: str) -> str:
    """A page's heading: ``operators-table`` is Table, a public module is called by its name."""
    last = page.rpartition("-")[2]
    return (
        f"streamgauge.{page}"
        if page in MODULES
        else last.replace("_", " ").capitalize().replace("Sql", "SQL")
    )


def page(room: str, names: dict[str, str]) -> str:
    """The page of a room: each name with its docstring."""
    blocks = "".join(f"\n::: streamgauge.{target}\n" for _, target in sorted(names.items()))
    return f"# {title(room)}\n{blocks}"
