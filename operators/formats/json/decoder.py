"""JSON messages as typed columns.

Polars' own reader was tried first. It accepts or refuses a batch as a whole, so finding one bad line needs a
search; it silently turns numbers into strings; and it takes twice the CPU time. Here a kernel reads each
message once, directly from the received bytes; Polars only parses times.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from functools import cached_property
from typing import Any

from ....sketches.core.lazy import np, pa, pl
from ..column_types import check_polars_types
from ..decode import TOMBSTONE, Decoded
from ..messages import Messages
from ..reasons import Reason
from . import schema as json_schema
from .fields import JsonField, as_types, at_path, nested
from .nested import Lift, Places, from_string, lifting, lowered
from .schema import RAW, Layout, Node, compile_schema

_MOST_BYTES = (1 << 31) - 1
"""Arrow's string views have 32-bit offsets into a buffer."""

_SORTS = {"{": "an object", "[": "a list", '"': "a string", "t": "true", "f": "false"}


def json(schema: Mapping[str, Any]) -> Json:
    """A decoder of JSON objects into columns of these Polars types.

    A field that is missing or null is null; fields not named in the schema are skipped. Strings, integers of
    any width, floats, Booleans, structs, and lists of any of these are read from their JSON counterparts;
    Datetime, Date and Time from ISO 8601 strings; Decimal exactly from numbers or strings; Binary preserves
    any value's JSON text. If a name occurs twice, the last value counts. `field` reads a column from inside
    objects, by its path, numbers from strings, or objects with any keys:
    ``json({"who": field("actor.id", pl.String)})``. Lists of objects are
    ``pl.List(pl.Struct({"sku": pl.String}))``, which ``.explode`` turns into rows.

    A message that doesn't fit the schema is refused with a reason: it is not JSON, not an object, has a
    string instead of a number, a number that is too large, or text that is not Unicode. Raises `TypeError`
    for types without a JSON counterpart, and `ValueError` if two columns read one field in two ways.

    >>> import streamgauge as sg
    >>> decoder = sg.json({"user": pl.String, "price": pl.Float64})
    >>> values = [b'{"user": "ann", "price": 1.5}', b"oops", b'{"user": 7}', None]
    >>> found = decoder.decode(sg.formats.Messages.of(values))
    >>> found.frame.rows(), found.rows.tolist()
    ([('ann', 1.5)], [0])
    >>> dict(zip(found.refused.tolist(), found.reasons))
    {1: 'not JSON: byte 0', 2: '"user" is 7, not String', 3: 'no value (a tombstone)'}
    """
    check_polars_types("json", schema, besides=(JsonField, dict))
    json_fields = {name: kind for name, kind in schema.items() if isinstance(kind, JsonField)}
    decoder = Json(
        {**schema, **{name: json_field.kind for name, json_field in json_fields.items()}}, json_fields
    )
    _ = decoder._layout, decoder._lifts
    return decoder


@dataclass(frozen=True)
class Json:
    """A `Decoder` of JSON objects, created by `json`. `fields` has the results of `field`, by column."""

    schema: Mapping[str, Any]
    fields: Mapping[str, JsonField] = dataclass_field(default_factory=dict)

    @cached_property
    def _json_fields(self) -> dict[str, JsonField]:
        return {name: self.fields.get(name, JsonField((name,), kind)) for name, kind in self.schema.items()}

    @cached_property
    def _layout(self) -> Layout:
        kinds = {
            name: pl.Binary() if json_field.text else lowered(json_field.kind, json_field.entries)
            for name, json_field in self._json_fields.items()
        }
        return compile_schema(as_types(nested(self._json_fields, kinds)))

    @cached_property
    def _lifts(self) -> dict[str, Lift]:
        lifts = {}
        for name, json_field in self._json_fields.items():
            path = ".".join(json_field.path)
            if json_field.text:
                one: Lift | None = from_string(json_field.kind, path)
            else:
                one = lifting(json_field.kind, path, _element, json_field.entries)
            if one is not None:
                lifts[name] = one
        return lifts

    @property
    def members(self) -> dict[str, Any]:
        """The columns that are members of the object by their own names."""
        return {name: kind for name, kind in self.schema.items() if name not in self.fields}

    @property
    def _plain(self) -> bool:
        """Whether the kernel's columns are already the requested ones."""
        return not self.fields and not self._lifts

    def __getstate__(self) -> dict[str, Any]:
        return {"schema": self.schema, "fields": self.fields}

    def definition(self) -> dict[str, Any]:
        """Its fields that are not members by their own names; the schema is defined beside it."""
        fields = {
            name: {"path": list(f.path), "text": f.text, **({"entries": f.places} if f.entries else {})}
            for name, f in self.fields.items()
        }
        return {"fields": fields} if fields else {}

    def decode(self, messages: Messages) -> Decoded:
        """The rows of a batch, and why the other messages were refused."""
        if messages.lines.size > _MOST_BYTES and len(messages) > 1:
            half = len(messages) // 2
            numbers = np.arange(len(messages))
            first, second = (self.decode(messages.select(n)) for n in (numbers[:half], numbers[half:]))
            return _joined(first, second, half, len(messages))
        from .columns import Columns  # loads the kernels, which a schema alone doesn't need

        layout = self._layout
        parsed = Columns(layout, messages)
        columns = [parsed.column(at) for at in layout.nodes[0].children]
        rows, refused = parsed.rows, parsed.refused[:, 0]
        reasons = [self._reason(messages, *entry) for entry in parsed.refused.tolist()]
        names = [layout.nodes[at].name for at in layout.nodes[0].children]
        table = pa.Table.from_arrays(columns, names=names)
        frame = pl.from_arrow(table) if columns else pl.DataFrame(height=len(rows))
        assert isinstance(frame, pl.DataFrame)
        frame.columns = names  # Polars would rename a column with an empty name.
        wrong = parsed.late
        if not self._plain:
            frame = self._lifted(frame, wrong)
        decoded = Decoded(frame, None if len(rows) == len(messages) else rows, refused, reasons)
        late = np.zeros(len(rows), bool)
        late[list(wrong)] = True
        return decoded.without(late, [wrong[row] for row in sorted(wrong)])

    def _lifted(self, frame: pl.DataFrame, wrong: dict[int, str]) -> pl.DataFrame:
        """The requested columns, converted from the kernel's."""
        columns = []
        for name, json_field in self._json_fields.items():
            column = at_path(frame, json_field.path)
            lift = self._lifts.get(name)
            columns.append((column if lift is None else lift(column, wrong)).alias(name))
        return pl.DataFrame(columns) if columns else frame

    def _reason(self, messages: Messages, message: int, why: int, place: int, node: int) -> str:
        if why == json_schema.TOMBSTONE:
            return TOMBSTONE
        if why == json_schema.EMPTY:
            return "an empty value"
        if why == json_schema.NOT_JSON:
            return Reason("not JSON", f"not JSON: byte {place}")
        if why == json_schema.NO_OBJECT:
            return "not a JSON object"
        if why == json_schema.NOT_UNICODE:
            return Reason("text that is not Unicode", f"text that is not Unicode: byte {place}")
        expected = self._layout.nodes[node]
        value = (messages.value_at(message) or b"")[place : place + 60].decode(errors="replace")
        return _misfit(expected, self._layout.path(node), value, why)


def _element(kind: Any, places: Places) -> Json:
    """A decoder for the elements of a list, each wrapped in an object."""
    return json({"x": JsonField(("x",), kind, entries=places) if places else kind})


def _misfit(node: Node, path: str, value: str, why: int) -> Reason:
    if node.is_list and value.startswith("["):
        return Reason(f'"{path}" holds a value that is not {node.dtype.inner}')  # type: ignore[attr-defined]
    number = re.match(r"-?[0-9.eE+-]+", value)
    shown = number[0][:40] if number else _SORTS.get(value[:1], "something else")
    if why == json_schema.OUT_OF_RANGE:
        kind = f'"{path}" is out of the range of {node.dtype}'
        return Reason(kind, f'"{path}" is {shown}, out of the range of {node.dtype}')
    if why == json_schema.FRACTION:
        kind = f'"{path}" is not a whole number ({node.dtype})'
        return Reason(kind, f'"{path}" is {shown}, not a whole number ({node.dtype})')
    kind = str(node.dtype)
    if isinstance(node.dtype, pl.Struct):
        kind = "an object"
    elif node.is_list and node.kind == RAW:
        kind = "a list"
    return Reason(f'"{path}" is not {kind}', f'"{path}" is {shown}, not {kind}')


def _joined(first: Decoded, second: Decoded, half: int, count: int) -> Decoded:
    one = np.arange(half) if first.rows is None else first.rows
    two = np.arange(count - half) if second.rows is None else second.rows
    return Decoded(
        pl.concat([first.frame, second.frame]),
        None if first.rows is None and second.rows is None else np.concatenate([one, two + half]),
        np.concatenate([first.refused, second.refused + half]),
        first.reasons + second.reasons,
    )
