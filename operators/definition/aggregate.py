"""One aggregate as a value: the family's name, the column, the parameters, and their JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Self

from ...sketches.core.lazy import pa
from ...sketches.core.parameters import described, whole
from ...sketches.core.protocol import Groups, SketchError
from ..families import MOMENT, RENAMED, Family, family

VERSION = 1
"""The version of the JSON form of an aggregate."""

METADATA = b"streamgauge"
"""The key under which Arrow metadata stores definitions."""


@dataclass(frozen=True)
class Aggregate:
    """One aggregate: the family's name in the registry, the column, the parameters of sketch and answer.

    `inputs` names the columns of further row-wise inputs. `typed` adds the parameters that the column's type
    determines; only a typed aggregate can create groups. If hashes of values are stored, these include
    `item_kind`: the kind of values that may be queried (`sketches.core.values.item_kinds`).

    >>> import streamgauge as sg
    >>> users = aggregate("distinct", "user", lg_k=11)
    >>> sg.Aggregate.from_json(users.to_json()) == users
    True
    """

    name: str
    column: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    answer: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    item_kind: str | None = None

    @property
    def family(self) -> Family:
        """The aggregate's entry in the registry."""
        return family(self.name)

    @property
    def columns(self) -> list[str]:
        """All columns that it reads: its own, and those of its inputs."""
        return [*([] if self.column is None else [self.column]), *self.inputs.values()]

    def typed(self, column_type: pa.DataType | None) -> Aggregate:
        """The same aggregate with the parameters that its column's type determines.

        Raises `TypeError` if the family doesn't accept such a column.
        """
        if column_type is None:
            return self
        while hasattr(column_type, "value_type"):
            column_type = column_type.value_type
        try:
            decided = self.family.of_column(column_type)
        except TypeError as error:
            raise TypeError(f"{self.name}({self.column!r}): {error}") from None
        from ...sketches.core.values.item_kinds import kind_of_type

        item_kind = kind_of_type(column_type) if self.family.aggregate.hashes else None
        return replace(self, params={**self.params, **decided}, item_kind=item_kind)

    def groups(self, n: int = 0, seed: int = 0) -> Groups:
        """`n` empty groups of this aggregate; `seed` is for families that draw random numbers."""
        params = dict(self.params)
        if "type" in params:
            params["type"] = arrow_type(params["type"])
        if self.family.seeded:
            params["seed"] = seed
        groups = self.family.groups_class()(n, **params)
        if self.item_kind is not None:
            groups.item_kind = self.item_kind
        return groups

    def definition(self) -> dict[str, Any]:
        """As plain JSON."""
        fields = {
            "aggregate": self.name,
            "column": self.column,
            "params": dict(self.params),
            "answer": dict(self.answer),
            "inputs": dict(self.inputs),
        }
        return fields if self.item_kind is None else {**fields, "item_kind": self.item_kind}

    def to_json(self) -> str:
        """The definition as text for a field's metadata; equal aggregates give equal text."""
        return json.dumps({"version": VERSION, **self.definition()}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Parse an aggregate's definition. Raises `SketchError` if it is invalid or of another version."""
        return cls(*_read(text))


@lru_cache(1_000)
def _read(text: str | bytes) -> tuple[Any, ...]:
    """Parse a definition (`Aggregate.from_json`); cached, because every look at a table's schema needs it."""
    try:
        fields = json.loads(text)
        if fields["version"] != VERSION:
            raise SketchError(
                f"the aggregate was written in format version {fields['version']}, by another version of "
                f"streamgauge, and this one reads format version {VERSION}: install that version"
            )
        name = RENAMED.get(fields["aggregate"], fields["aggregate"])
        family(name)
        parts = ("column", "params", "answer", "inputs")
        return name, *(fields[part] for part in parts), fields.get("item_kind")
    except SketchError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SketchError(f"{text!r} is not the definition of an aggregate: {error}") from None


def arrow_type(text: str) -> pa.DataType:
    """Parse an Arrow type from its `str`.

    >>> arrow_type("timestamp[us, tz=UTC]")
    TimestampType(timestamp[us, tz=UTC])
    """
    if zoned := re.fullmatch(r"timestamp\[(\w+), tz=(.+)\]", text):
        return pa.timestamp(*zoned.groups())
    if decimal := re.fullmatch(r"decimal128\((\d+), (-?\d+)\)", text):
        return pa.decimal128(*map(int, decimal.groups()))
    return pa.type_for_alias(text)


def aggregate(name: str, column: str | None, **options: Any) -> Aggregate:
    """Return the aggregate called `name`; the options are parameters of its sketch or its answer.

    A family's further inputs are options as well and name columns (`weight="amount"`); a row's event time and
    position need no name. Raises `KeyError` for an unknown name, `TypeError` for an unknown option or a
    missing input, and `SketchError` for a parameter out of range.
    """
    line = family(name)
    named = [given for given in line.inputs if given not in MOMENT]
    named += [given for given in line.optional if options.get(given) is not None]
    unknown = set(options) - set(line.params) - set(line.answer) - {*named, *line.optional}
    if unknown:
        known = ", ".join(dict.fromkeys([*line.params, *line.answer, *named, *line.optional])) or "none"
        raise TypeError(f"{name} has no option {', '.join(sorted(unknown))}; it has {known}")
    if column is not None and not isinstance(column, str):
        raise TypeError(
            f"{name}: the column must be a string, got {column!r}; turn an expression into a column first, "
            "with with_columns of a stream or withColumn of a Spark DataFrame"
        )
    for given in named:
        if not isinstance(options.get(given), str):
            raise TypeError(f"{name}: {given}= must be the name of a column, got {options.get(given)!r}")
    params = {key: described(options.get(key, default)) for key, default in line.params.items()}
    answer = {key: described(options.get(key, default)) for key, default in line.answer.items()}
    _check(line, params, answer)
    return Aggregate(name, column, params, answer, {given: options[given] for given in named})


def _check(line: Family, params: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
    """Raise `SketchError` for parameters that the family refuses, by creating no groups with them."""
    try:
        if not line.exact:
            line.groups_class()(0, **params)
        for key, value in answer.items():
            whole(line.name, key, value, 1)
    except SketchError as error:
        raise SketchError(f"{line.name}: {str(error).partition(': ')[2]}") from None
