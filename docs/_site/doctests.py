"""For the site: examples in docstrings become blocks of code, which Markdown takes for quotes otherwise."""

from __future__ import annotations

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^( *)>>> ")


def fenced(text: str) -> str:
    """A docstring with each example, its prompts and output, as a block of code.

    >>> print(fenced("Adds up:\\n\\n>>> 1 + 1\\n2\\n\\nMore."))
    Adds up:
    <BLANKLINE>
    ```pycon
    >>> 1 + 1
    2
    ```
    <BLANKLINE>
    More.
    """
    result: list[str] = []
    indent: str | None = None
    for line in text.splitlines():
        begin = _EXAMPLE.match(line)
        if indent is None and begin:
            indent = begin[1]
            result += [f"{indent}```pycon"]
        elif indent is not None and not line.strip():
            result += [f"{indent}```"]
            indent = None
        result.append(line)
    return "\n".join([*result, f"{indent}```"] if indent is not None else result)


class Doctests(griffe.Extension):
    """Rewrites each docstring as it is read."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """See `griffe.Extension`."""
        if obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)
