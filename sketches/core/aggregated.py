"""How a family is requested as an aggregate of a column: what every engine must know of it before it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .column_kinds import anything
from .lazy import pa


@dataclass(frozen=True, slots=True)
class Aggregated:
    """What a family's class of groups says of itself, as its `aggregate`.

    >>> from ..hll import HLLGroups
    >>> HLLGroups.aggregate.params, HLLGroups.aggregate.of_column(pa.string())
    ({'lg_k': 12}, {})
    """

    params: Mapping[str, Any] = field(default_factory=dict)
    """The parameters that may be set, of one sketch and of groups alike, with their defaults."""
    answer: Mapping[str, Any] = field(default_factory=dict)
    """The parameters of the question that is answered in the end, with their defaults."""
    inputs: tuple[str, ...] = ()
    """Further row-wise inputs of `update`, such as ``weight``; ``time`` and a row's place need no column."""
    optional: tuple[str, ...] = ()
    """Such inputs that may be left out; `update` says itself which rows it skips and which it refuses."""
    of_column: Callable[[pa.DataType], dict[str, Any]] = anything
    """The parameters that a column's type decides; raises `TypeError` for other columns (`column_kinds`)."""
    hashes: bool = False
    """Whether nothing but hashes is kept of values, which must then be of one kind (`item_kinds`)."""
    skips_empty: bool = False
    """Whether empty strings are not counted, as DataSketches has it, whose bytes these are."""
    seeded: bool = False
    """Whether groups draw random numbers and take a ``seed=``."""
    kinds: tuple[str, ...] = ()
    """The kinds of item that `from_bytes` can be given for an image, ``kind=``, as the image doesn't say."""
    must_name_kind: bool = False
    """Whether `from_bytes` refuses an image without a given kind."""
    spark_merge: str = ""
    """Spark's own aggregate that merges the column; empty where Spark has none.

    ``{kind}`` stands for the parameter. ``struct_sum`` and ``chan`` are the sums of a struct's fields and
    Chan's formula, for which Spark has no function.
    """
