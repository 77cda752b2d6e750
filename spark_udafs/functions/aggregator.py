"""Sketches as Spark 4.4's `Aggregator`, which aggregates in two stages: in each partition, then by group.

    from pyspark.sql.functions import udaf

    users = udaf(as_aggregator(distinct("user"), StringType()))
    posts.groupBy("lang").agg(users("user"))

Spark hands over one row at a time. A buffer therefore holds rows until they are worth a call of a kernel;
groups of few rows travel as these rows, which are smaller than a sketch.

Source: Spark `pyspark.sql.aggregator.Aggregator` (SPARK-58736).
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import ArrayType, BinaryType, DataType, StructField, StructType

from ...operators.definition.aggregate import Aggregate
from ...sketches.core.protocol import Sketch
from .aggregates import TaskSeeds, sketched
from .reading import read_options

if TYPE_CHECKING:
    _Aggregator = object
else:
    try:
        from pyspark.sql.aggregator import Aggregator as _Aggregator
    except ImportError:  # Spark 4.3 has none yet
        _Aggregator = object

AT_ONCE = 1024
"""Rows that a buffer holds before they go into its sketch."""

Buffer = tuple[bytes | None, list[tuple[Any, ...]]]
"""A sketch, or None for an empty one, and rows that are not in it yet."""


def as_aggregator(asked: Aggregate, *types: DataType) -> SketchAggregator:
    """An aggregate as an `Aggregator`; `types` are those of its column, then of what it needs beside it.

    Called by Spark, it takes these columns in this order: ``sketched("item", "weight")``.

    Raises `TypeError` for an exact aggregate, which Spark has itself, for another number of types, and for
    types that the aggregate doesn't take.

    >>> from pyspark.sql.types import LongType
    >>> from ...operators.definition.aggregates import distinct
    >>> users = as_aggregator(distinct("user", lg_k=11), LongType())
    >>> users.bufferSchema.simpleString()
    'struct<sketch:binary,rows:array<struct<column:bigint>>>'
    >>> buffer = users.reduce(users.reduce(users.zero(), (7,)), (None,))
    >>> from ...sketches.hll import HLL
    >>> HLL.from_bytes(users.finish(users.merge(buffer, users.zero())))
    HLL(lg_k=11): 1 distinct, 1 to 1 at 95.4 %
    """
    return SketchAggregator(asked, types)


class SketchAggregator(_Aggregator):
    """One aggregate, by the names that Spark calls: see `as_aggregator`."""

    def __init__(self, asked: Aggregate, types: tuple[DataType, ...]) -> None:
        if asked.family.exact:
            raise TypeError(f"{asked.name} is exact, and a function of Spark's own; use that")
        names = ("column", *asked.family.inputs)
        if len(types) != len(names):
            raise TypeError(
                f"{asked.name} takes {len(names)} columns, {', '.join(names)}; got {len(types)} types"
            )
        self._asked = asked
        self._fields = [StructField(name, kind) for name, kind in zip(names, types)]
        self._types = [to_arrow_type(kind, timezone="UTC") for kind in types]
        self._seeds = TaskSeeds(secrets.randbits(32))
        self._typed = asked.typed(self._types[0])

    @property
    def bufferSchema(self) -> StructType:
        """A sketch, and rows that are not in it yet."""
        rows = ArrayType(StructType(self._fields))
        return StructType([StructField("sketch", BinaryType()), StructField("rows", rows)])

    @property
    def outputType(self) -> DataType:
        """The sketch's bytes."""
        return BinaryType()

    def zero(self) -> Buffer:
        """An empty buffer, which changes nothing that it is merged with."""
        return None, []

    def reduce(self, buffer: Buffer, value: tuple[Any, ...]) -> Buffer:
        """The buffer with one more row; the one given is used up, except for `zero`."""
        image, rows = buffer
        if not rows:
            # Spark doesn't say that it asks for another zero for each group.
            return image, [tuple(value)]
        rows.append(tuple(value))
        return buffer if len(rows) < AT_ONCE else (self._image(image, rows), [])

    def merge(self, buffer1: Buffer, buffer2: Buffer) -> Buffer:
        """Both in one."""
        (image, rows), (other, more) = buffer1, buffer2
        if image is not None and other is not None:
            image = self._read(image).merge(self._read(other)).to_bytes()
        found, kept = image if image is not None else other, [*rows, *more]
        return (found, kept) if len(kept) < AT_ONCE else (self._image(found, kept), [])

    def finish(self, buffer: Buffer) -> bytes:
        """The sketch of all rows."""
        return self._image(*buffer)

    def _image(self, image: bytes | None, rows: list[tuple[Any, ...]]) -> bytes:
        if image is not None and not rows:
            return image
        # Rows that have crossed the shuffle come back as structs of Arrow.
        values = [tuple(row.values()) if isinstance(row, dict) else tuple(row) for row in rows]
        columns = zip(*values) if values else ([] for _ in self._types)
        column, *inputs = (pa.array(list(one), kind) for one, kind in zip(columns, self._types))
        named = dict(zip(self._asked.family.inputs, inputs))
        made = sketched(self._asked, self._seeds.next(), column, named)
        return made if image is None else self._read(image).merge(self._read(made)).to_bytes()

    def _read(self, image: bytes) -> Sketch:
        line = self._asked.family
        names = [*read_options(line), *(["kind"] if line.asked.kinds else [])]
        told = {name: self._typed.params[name] for name in names if name in self._typed.params}
        sketch: Any = line.sketch_class()
        return sketch.from_bytes(image, **told)
