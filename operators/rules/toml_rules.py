"""Rules in a small TOML file, with errors that name the rule, the field and its valid values.

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
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

from ..plugins import RULES, PluginError, describe, load_plugin, plugins, warn_if_shadowed
from .kinds.absence import Absence, Flatline
from .kinds.beyond import Beyond
from .kinds.burst import Burst
from .kinds.change import Change
from .kinds.clock_offset import ClockOffset
from .kinds.new_term import NewTerm
from .kinds.rate import Rate
from .kinds.rolling_sum import RollingSum
from .kinds.slope import Slope
from .kinds.sta_lta import StaLta
from .kinds.threshold import Ratio, Threshold
from .kinds.unusual import Unusual
from .rule import Rule

KINDS: dict[str, type[Rule]] = {
    kind.__name__.lower(): kind
    for kind in (
        Threshold,
        Ratio,
        RollingSum,
        Change,
        Unusual,
        Beyond,
        Burst,
        StaLta,
        Slope,
        Absence,
        Flatline,
        NewTerm,
        ClockOffset,
        Rate,
    )
}
"""The package's own kinds of rules that a file can name."""


def read_rules(path: str | Path, kinds: Mapping[str, type[Rule]] = KINDS) -> list[Rule]:
    """The rules of a TOML file, one ``[[rule]]`` each, whose `kind` is one of `kinds`, or of another package.

    Other installed packages add kinds through entry points of the group ``streamgauge.rules``. Each kind has
    its own fields; `about` sets the rule's field `kind`, the kind of its alerts. Raises `ValueError`, naming
    the file, the line and the field, for anything else, `PluginError` for another package's kind that can't
    be used, and `OSError` for a file that can't be read.

    >>> from tempfile import NamedTemporaryFile
    >>> import streamgauge as sg
    >>> with NamedTemporaryFile("w", suffix=".toml") as file:
    ...     _ = file.write('[[rule]]\\nname = "hot"\\nkind = "threshold"\\nvalue = "t"\\nabove = 30\\n')
    ...     file.flush()
    ...     sg.rules.read_rules(file.name)[0].limit.at
    30
    """
    text = Path(path).read_text(encoding="utf-8")
    return rules_of(text, str(path), kinds)


def read_rules_by_part(
    path: str | Path, parts: Sequence[str], kinds: Mapping[str, type[Rule]] = KINDS
) -> dict[str, list[Rule]]:
    """The rules of a file for an app with several parts: each may name its `part`, by default the first.

    Raises what `read_rules` raises, and `ValueError` for an unknown part.
    """
    text = Path(path).read_text(encoding="utf-8")
    rules: dict[str, list[Rule]] = {part: [] for part in parts}
    for part, rule in _rules(text, str(path), kinds, parts):
        rules[part].append(rule)
    return rules


def rules_of(text: str, source: str = "rules", kinds: Mapping[str, type[Rule]] = KINDS) -> list[Rule]:
    """The rules of a TOML text; `source` is its name in errors.

    >>> rules_of('''[[rule]]  # doctest: +ELLIPSIS
    ... name = "hot"
    ... kind = "threshhold"''')
    Traceback (most recent call last):
    ValueError: rules, line 1: the rule 'hot': kind must be one of threshold, ratio, ..., got 'threshhold'
    """
    return [rule for _, rule in _rules(text, source, kinds, ())]


def _rules(
    text: str, source: str, kinds: Mapping[str, type[Rule]], parts: Sequence[str]
) -> list[tuple[str, Rule]]:
    """The rules, each with its part."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{source}: not TOML: {error}") from None
    if unknown := sorted(document.keys() - {"rule", "outlet", "silence"}):
        raise ValueError(f"{source}: {unknown[0]!r} is not known here; write each rule as [[rule]]")
    listed = document.get("rule", [])
    if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
        raise ValueError(f"{source}: 'rule' is not a list; write each rule as [[rule]], with two brackets")
    lines = [number for number, line in enumerate(text.splitlines(), 1) if _begins(line)]
    # Rules written as one inline list don't have a line each.
    places = (
        [f"{source}, line {line}" for line in lines] if len(lines) == len(listed) else [source] * len(listed)
    )
    rules: list[tuple[str, Rule]] = []
    for entry, place in zip(listed, places):
        part = entry.pop("part", parts[0]) if parts else ""
        if parts and part not in parts:
            raise ValueError(f"{place}: part must be one of {', '.join(parts)}, got {part!r}")
        rule = _rule(entry, place, kinds)
        if rule.name in [other.name for _, other in rules]:
            raise ValueError(f"{place}: there is another rule of the name {rule.name!r}")
        rules.append((part, rule))
    return rules


def _begins(line: str) -> bool:
    return line.split("#")[0].replace(" ", "").strip() == "[[rule]]"


def _kind(name: Any, named: str, kinds: Mapping[str, type[Rule]]) -> type[Rule]:
    if name in kinds:
        warn_if_shadowed(RULES, name)
        return kinds[name]
    others = plugins(RULES, kinds)
    if name not in others:
        raise ValueError(f"{named}: kind must be one of {', '.join([*kinds, *others])}, got {name!r}")
    try:
        kind = load_plugin(others[name])
    except PluginError as error:
        raise PluginError(f"{named}: {error}") from error
    if not (isinstance(kind, type) and issubclass(kind, Rule) and is_dataclass(kind)):
        where = describe(others[name][0])
        raise PluginError(f"{named}: {where} must be a dataclass below Rule, got {kind!r}")
    return kind


def _rule(entry: dict[str, Any], place: str, kinds: Mapping[str, type[Rule]]) -> Rule:
    named = (
        f"{place}: the rule {entry.get('name')!r}" if "name" in entry else f"{place}: a rule without a name"
    )
    if "name" not in entry:
        raise ValueError(f'{named}; write name = "…"')
    kind = _kind(entry.get("kind"), named, kinds)
    known = {field.name: field for field in fields(kind) if field.init}
    allowed = [*(name for name in known if name != "kind"), "about"]
    given = {name: value for name, value in entry.items() if name != "kind"}
    if unknown := [name for name in given if name not in allowed]:
        raise ValueError(
            f"{named}: {unknown[0]!r} is not a field of {entry['kind']}; it has {', '.join(allowed)}"
        )
    for name, value in given.items():
        default = known["kind" if name == "about" else name].default
        if isinstance(default, bool) != isinstance(value, bool) and default is not MISSING:
            wanted = "must be" if isinstance(default, bool) else "can't be"
            raise ValueError(f"{named}: {name} {wanted} true or false, got {value!r}")
    if "about" in given:
        given["kind"] = given.pop("about")
    try:
        return kind(**given)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{place}: {error}") from None
