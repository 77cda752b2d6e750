"""Rules as a small TOML file, with errors that name the rule, the field and what it can be.

[[rule]]
name = "hot"
kind = "threshold"
value = "temperature"
above = 78
clear = 76
hold = "10m"

[[rule]]
name = "dead sensor"
kind = "absence"
longer = "2h"
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from .absence import Absence, Flatline
from .beyond import Beyond
from .burst import Burst
from .change import Change
from .new_term import NewTerm
from .rolling_sum import RollingSum
from .rule import Rule
from .sta_lta import StaLta
from .threshold import Ratio, Threshold

KINDS: dict[str, type[Rule]] = {
    kind.__name__.lower(): kind
    for kind in (Threshold, Ratio, RollingSum, Change, Beyond, Burst, StaLta, Absence, Flatline, NewTerm)
}
"""The kinds of rules that a file can name."""


def read_rules(path: str | Path, kinds: Mapping[str, type[Rule]] = KINDS) -> list[Rule]:
    """The rules of a TOML file, one ``[[rule]]`` each, whose `kind` is one of `kinds`.

    The fields are those of the kinds; `about` is the field `kind` of the rule, what its alerts are about.
    Raises `ValueError`, naming the file, the line and the field, for anything else, and `OSError` for a file
    that can't be read.

    >>> from tempfile import NamedTemporaryFile
    >>> with NamedTemporaryFile("w", suffix=".toml") as file:
    ...     _ = file.write('[[rule]]\\nname = "hot"\\nkind = "threshold"\\nvalue = "t"\\nabove = 30\\n')
    ...     file.flush()
    ...     read_rules(file.name)[0].limit.at
    30
    """
    text = Path(path).read_text(encoding="utf-8")
    return rules_of(text, str(path), kinds)


def read_rules_by_part(
    path: str | Path, parts: Sequence[str], kinds: Mapping[str, type[Rule]] = KINDS
) -> dict[str, list[Rule]]:
    """The rules of a file for an app of several parts: each may name its `part`, which is the first unless it
    does.

    Raises what `read_rules` raises, and `ValueError` for a part that there isn't.
    """
    text = Path(path).read_text(encoding="utf-8")
    found: dict[str, list[Rule]] = {part: [] for part in parts}
    for part, rule in _rules(text, str(path), kinds, parts):
        found[part].append(rule)
    return found


def rules_of(text: str, source: str = "rules", kinds: Mapping[str, type[Rule]] = KINDS) -> list[Rule]:
    """The rules of a TOML text; `source` is what errors call it.

    >>> rules_of('''[[rule]]  # doctest: +ELLIPSIS
    ... name = "hot"
    ... kind = "threshhold"''')
    Traceback (most recent call last):
    ValueError: rules, line 1: the rule 'hot': kind is 'threshhold'; it can be threshold, ratio, ...
    """
    return [rule for _, rule in _rules(text, source, kinds, ())]


def _rules(
    text: str, source: str, kinds: Mapping[str, type[Rule]], parts: Sequence[str]
) -> list[tuple[str, Rule]]:
    """The rules, each with its part."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{source}: not TOML: {error}") from None
    if unknown := sorted(found.keys() - {"rule"}):
        raise ValueError(f"{source}: {unknown[0]!r} is not known here; write each rule as [[rule]]")
    listed = found.get("rule", [])
    if not isinstance(listed, list) or not all(isinstance(told, dict) for told in listed):
        raise ValueError(f"{source}: 'rule' is not a list; write each rule as [[rule]], with two brackets")
    lines = [number for number, line in enumerate(text.splitlines(), 1) if _begins(line)]
    # Rules that are written as one inline list have no line of their own.
    places = (
        [f"{source}, line {line}" for line in lines] if len(lines) == len(listed) else [source] * len(listed)
    )
    rules: list[tuple[str, Rule]] = []
    for told, place in zip(listed, places):
        part = told.pop("part", parts[0]) if parts else ""
        if parts and part not in parts:
            raise ValueError(f"{place}: part is {part!r}; it can be {', '.join(parts)}")
        rule = _rule(told, place, kinds)
        if rule.name in [other.name for _, other in rules]:
            raise ValueError(f"{place}: there is another rule of the name {rule.name!r}")
        rules.append((part, rule))
    return rules


def _begins(line: str) -> bool:
    return line.split("#")[0].replace(" ", "").strip() == "[[rule]]"


def _rule(told: dict[str, Any], place: str, kinds: Mapping[str, type[Rule]]) -> Rule:
    named = f"{place}: the rule {told.get('name')!r}" if "name" in told else f"{place}: a rule without a name"
    if "name" not in told:
        raise ValueError(f'{named}; write name = "…"')
    if told.get("kind") not in kinds:
        raise ValueError(f"{named}: kind is {told.get('kind')!r}; it can be {', '.join(kinds)}")
    kind = kinds[told["kind"]]
    known = {field.name: field for field in fields(kind) if field.init}
    allowed = [*(name for name in known if name != "kind"), "about"]
    given = {name: value for name, value in told.items() if name != "kind"}
    if unknown := [name for name in given if name not in allowed]:
        raise ValueError(
            f"{named}: {unknown[0]!r} is not a field of {told['kind']}; it has {', '.join(allowed)}"
        )
    for name, value in given.items():
        default = known["kind" if name == "about" else name].default
        if isinstance(default, bool) != isinstance(value, bool) and default is not MISSING:
            wanted = "true or false" if isinstance(default, bool) else "not true or false"
            raise ValueError(f"{named}: {name} is {value!r}; it is {wanted}")
    if "about" in given:
        given["kind"] = given.pop("about")
    try:
        return kind(**given)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{place}: {error}") from None
