"""A schema of Polars types as flat tables for the JSON kernel's look-ups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from ....sketches.core.lazy import np, pl

STRUCT, STRING, RAW, INT, UINT, DOUBLE, BOOL = range(7)
"""What the kernel produces for a field. It reads times as strings; RAW is the JSON text of any value."""

GOOD, TOMBSTONE, EMPTY, NOT_JSON, NO_OBJECT, NOT_UNICODE, OTHER_TYPE, OUT_OF_RANGE, FRACTION = range(9)
"""Why a message is refused."""


@cache
def _kinds() -> dict[Any, int]:
    return {
        pl.String: STRING,
        pl.Boolean: BOOL,
        pl.Float64: DOUBLE,
        pl.Float32: DOUBLE,
        pl.UInt64: UINT,
        pl.Binary: RAW,
        pl.Datetime: STRING,
        pl.Date: STRING,
        pl.Time: STRING,
    }


@cache
def _ranges() -> dict[Any, tuple[int, int]]:
    signed = ((pl.Int8, 8), (pl.Int16, 16), (pl.Int32, 32), (pl.Int64, 64))
    unsigned = ((pl.UInt8, 8), (pl.UInt16, 16), (pl.UInt32, 32))
    ranges: dict[Any, tuple[int, int]] = {
        kind: (-(1 << bits - 1), (1 << bits - 1) - 1) for kind, bits in signed
    }
    return ranges | {kind: (0, (1 << bits) - 1) for kind, bits in unsigned}


@dataclass(slots=True, eq=False)
class Node:
    """A field of the schema; node 0 is the whole object. `slot` is its row in the arrays of its kind."""

    name: str
    dtype: pl.DataType
    kind: int
    is_list: bool
    slot: int
    children: list[int] = field(default_factory=list)
    last: int = 0


# The words of a node in the kernel's table. An object's fields are adjacent at CHILDREN (their nodes'
# numbers); a node's descendants are those after it up to LAST. WORD is the first eight bytes of its NAME; up
# to 16 bytes of the member's usual beginning, `"name":`, are in TEXT_0 and TEXT_1, MASK_0 and MASK_1 select
# the significant bytes of these words, and TEXT_LENGTH is their length (0 if it is longer).
# The cells of a row are at PRESENT (a byte) and VALUES (a word, or two for a string); a list's elements at
# POOL and POOL_PRESENT likewise, from the row's word at STARTS to that at ENDS. TOP is a pool's fill level.
KIND, IS_LIST, LOW, HIGH, CHILDREN, COUNT, LAST, NAME, NAME_LENGTH, WORD = range(10)
PRESENT, VALUES, STARTS, ENDS, POOL, POOL_PRESENT, TOP, SAVED_TOP = range(10, 18)
TEXT_LENGTH, TEXT_0, TEXT_1, MASK_0, MASK_1 = range(18, 23)
WORDS = 23


@dataclass(frozen=True)
class Layout:
    """A compiled schema: its nodes, depth first, their table for the kernel without the addresses of cells,
    and the number of slots for each kind of column. The table points into `names` and `children`.
    """

    nodes: list[Node]
    table: np.ndarray
    names: np.ndarray
    children: np.ndarray
    strings: int
    numbers: int
    lists: int

    def path(self, node: int) -> str:
        """A field's name, preceded by the names of the structs around it."""
        names, at = [], 0
        while at != node:
            at = next(c for c in self.nodes[at].children if c <= node <= self.nodes[c].last)
            names.append(self.nodes[at].name)
        return ".".join(names)


def compile_schema(schema: Mapping[str, Any]) -> Layout:
    """Lay out a schema. Raises `TypeError` for a type without a JSON counterpart here."""
    nodes: list[Node] = []
    slots = {"strings": 0, "numbers": 0, "lists": 0}

    def take(which: str) -> int:
        slots[which] += 1
        return slots[which] - 1

    def add(name: str, dtype: Any, path: str) -> int:
        instance = dtype() if isinstance(dtype, type) else dtype
        node = Node(name, instance, STRUCT, False, -1)
        nodes.append(node)
        at = len(nodes) - 1
        if isinstance(instance, pl.Struct):
            inner = {f.name: f.dtype for f in instance.fields}
            node.children = [add(n, d, f"{path}.{n}" if path else n) for n, d in inner.items()]
        else:
            leaf = instance.inner if isinstance(instance, pl.List) else instance
            node.is_list = isinstance(instance, pl.List)
            node.kind = _kind(leaf, node.is_list, path)
            sort = "lists" if node.is_list else "strings" if node.kind in (STRING, RAW) else "numbers"
            node.slot = take(sort)
        node.last = len(nodes) - 1
        return at

    add("", pl.Struct(dict(schema)), "")
    return Layout(nodes, *_table(nodes), slots["strings"], slots["numbers"], slots["lists"])


def _kind(leaf: Any, in_list: bool, path: str) -> int:
    if leaf.base_type() in _ranges():
        return INT
    kind = _kinds().get(leaf.base_type())
    if kind is None or (in_list and leaf.is_temporal()):
        listed = "a list of " if in_list else ""
        raise TypeError(
            f"the JSON field {path!r} can't be {listed}{leaf}; possible are strings, Booleans, integers, "
            "floats, Datetime, Date, Time, structs of these, lists of all of them, and Binary for any "
            "value's JSON text as it stands"
        )
    return kind


def _table(nodes: list[Node]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    table = np.zeros((len(nodes), WORDS), np.int64)
    encoded = [node.name.encode() for node in nodes]
    names = np.frombuffer(bytearray(b"".join(encoded)) or bytearray(1), np.uint8)
    children = np.array([at for node in nodes for at in node.children] or [0], np.int64)
    name_at, child_at = names.ctypes.data, children.ctypes.data
    for row, node, name in zip(table, nodes, encoded):
        leaf: Any = node.dtype.inner if isinstance(node.dtype, pl.List) else node.dtype
        row[[KIND, IS_LIST, LAST]] = node.kind, node.is_list, node.last
        row[[LOW, HIGH]] = _ranges().get(leaf.base_type(), (0, 0))
        row[[CHILDREN, COUNT]] = child_at, len(node.children)
        row[[NAME, NAME_LENGTH]] = name_at, len(name)
        row[WORD] = np.frombuffer(name[:8].ljust(8, b"\0"), np.int64)[0]
        text = b'"%b":' % name
        if len(text) <= 16 and name.isascii() and name.decode().isprintable() and not {*b'"\\'} & {*name}:
            row[TEXT_LENGTH] = len(text)
            row[[TEXT_0, TEXT_1]] = np.frombuffer(text.ljust(16, b"\0"), np.int64)
            row[[MASK_0, MASK_1]] = np.frombuffer((b"\xff" * len(text)).ljust(16, b"\0"), np.int64)
        name_at += len(name)
        child_at += 8 * len(node.children)
    return table, names, children
