"""The statements of a script as values. Queries in them are sqlglot trees with positions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import exp


@dataclass(frozen=True, slots=True)
class Word:
    """A word or a constant of a statement, with its position."""

    value: Any
    start: int
    end: int

    @property
    def meta(self) -> dict[str, int]:
        """Its position, in the form of tree nodes."""
        return {"start": self.start, "end": self.end - 1}

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, slots=True)
class DeclaredColumn:
    """A column of a CREATE; `role` is ``key`` for a column from the message's key, else empty."""

    name: Word
    type: exp.DataType
    role: str = ""


Options = Mapping[str, Word]
"""The options in WITH, by upper-case names."""


@dataclass(frozen=True, slots=True)
class CreateSource:
    """``CREATE STREAM`` or ``CREATE TABLE`` over a topic."""

    kind: str
    name: Word
    columns: tuple[DeclaredColumn, ...]
    options: Options
    replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateView:
    """``CREATE VIEW`` of a query of rows."""

    name: Word
    select: exp.Select
    replace: bool = False


@dataclass(frozen=True, slots=True)
class Define:
    """``DEFINE name = 'value'``, and, without a value, ``UNDEFINE name``."""

    name: Word
    value: Word | None = None


@dataclass(frozen=True, slots=True)
class CreateAs:
    """``CREATE STREAM`` or ``CREATE TABLE`` of a query's rows.

    `others` are the further SELECTs of a UNION ALL.
    """

    kind: str
    name: Word
    options: Options
    select: exp.Select
    replace: bool = False
    if_not_exists: bool = False
    others: tuple[exp.Select, ...] = ()


@dataclass(frozen=True, slots=True)
class CreateAlert:
    """``CREATE ALERT name AS SELECT … HAVING … WITH (…)``."""

    name: Word
    options: Options
    select: exp.Select


@dataclass(frozen=True, slots=True)
class Terminate:
    """``TERMINATE name``, or ``TERMINATE ALL`` with an empty name."""

    name: Word


@dataclass(frozen=True, slots=True)
class RunScript:
    """``RUN SCRIPT 'file'``."""

    file: Word


@dataclass(frozen=True, slots=True)
class InsertSelect:
    """``INSERT INTO … SELECT``; `others` are the further SELECTs of a UNION ALL."""

    name: Word
    select: exp.Select
    others: tuple[exp.Select, ...] = ()


@dataclass(frozen=True, slots=True)
class InsertValues:
    """``INSERT INTO … VALUES``, and ``ASSERT VALUES`` with `expected`."""

    name: Word
    columns: tuple[Word, ...]
    rows: tuple[exp.Tuple, ...]
    expected: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """A SELECT by itself; `others` are the further SELECTs of a UNION ALL."""

    select: exp.Select
    others: tuple[exp.Select, ...] = ()


@dataclass(frozen=True, slots=True)
class Show:
    """``SHOW TOPICS | STREAMS | TABLES | QUERIES | FUNCTIONS``."""

    what: Word


@dataclass(frozen=True, slots=True)
class Print:
    """``PRINT 'topic'``."""

    topic: Word
    beginning: bool
    limit: int | None


@dataclass(frozen=True, slots=True)
class Describe:
    """``DESCRIBE name``."""

    name: Word


@dataclass(frozen=True, slots=True)
class Drop:
    """``DROP STREAM | TABLE name``."""

    kind: str
    name: Word
    if_exists: bool


@dataclass(frozen=True, slots=True)
class SetOption:
    """``SET 'name' = 'value'``."""

    name: Word
    value: Word


@dataclass(frozen=True, slots=True)
class Explain:
    """``EXPLAIN statement``."""

    of: Query | CreateAs | CreateAlert | InsertSelect


Node = (
    CreateSource
    | CreateAs
    | CreateAlert
    | Terminate
    | RunScript
    | InsertSelect
    | InsertValues
    | Query
    | Show
    | Print
    | Describe
    | Drop
    | SetOption
    | Define
    | CreateView
    | Explain
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement in a script."""

    text: str
    start: int
    node: Node
