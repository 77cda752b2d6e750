"""How a family works as an aggregate of a column: what every engine must know about it in advance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .columns.column_kinds import anything
from .lazy import pa


@dataclass(frozen=True, slots=True)
class Aggregated:
    """The description of a family that its class of groups holds in `aggregate`.

    >>> from ..hll import HLLGroups
    >>> HLLGroups.aggregate.params, HLLGroups.aggregate.of_column(pa.string())
    ({'lg_k': 12}, {})
    """

    params: Mapping[str, Any] = field(default_factory=dict)
    """The parameters of a single sketch and of groups, with their defaults."""
    answer: Mapping[str, Any] = field(default_factory=dict)
    """The parameters of the question that the sketch answers, with their defaults."""
    inputs: tuple[str, ...] = ()
    """Further row-wise inputs of `update`, such as ``weight``; ``time`` and a row's place need no column."""
    optional: tuple[str, ...] = ()
    """The optional ones of these inputs; `update` defines which rows it skips and which it refuses."""
    of_column: Callable[[pa.DataType], dict[str, Any]] = anything
    """The parameters that a column's type determines; raises `TypeError` for others (`column_kinds`)."""
    hashes: bool = False
    """Whether only hashes of values are stored; all values must then be of one kind (`item_kinds`)."""
    skips_empty: bool = False
    """Whether empty strings are skipped, as in DataSketches, whose format the family uses."""
    seeded: bool = False
    """Whether groups draw random numbers and accept a ``seed=``."""
    kinds: tuple[str, ...] = ()
    """The kinds of item that `from_bytes` accepts as ``kind=``, because an image doesn't record its kind."""
    must_name_kind: bool = False
    """Whether `from_bytes` requires a kind."""
    spark_merge: str = ""
    """Spark's own aggregate that merges the column; empty if Spark has none.

    ``{kind}`` is replaced by that parameter. ``struct_sum`` and ``chan`` stand for summing a struct's fields
    and for Chan's formula, for which Spark has no functions.
    """
