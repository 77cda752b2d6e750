"""The table of functions: their arguments, results, descriptions, and what runs in a worker.

A function's name is VERB_NAME, followed by _KIND if bytes don't record the kind of their items; NAME is an
aggregate's. The names come from the registry's families, the verbs from the questions that their sketches
answer.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from inspect import getdoc
from inspect import signature as signature_of
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type

from ...operators.definition.aggregate_factory import aggregate_function
from ...operators.families import FAMILIES, Family
from ..gc_freeze import freeze_imports
from ..worker_errors import raised_alone
from .aggregates import TaskSeeds, merged, sketch_of
from .arguments import bound, signature
from .questions import item_kinds, question_of
from .reading import read_options
from .scalars import answers_each, read_states

VERBS = {
    "sketch": "aggregates a column into a sketch",
    "merge": "aggregates sketches into one",
    "answer": "gives a sketch's answer with its bounds",
    "count": "gives how often an item occurred, with bounds",
    "rank": "gives the share of values that are at most `value`, with bounds",
    "contains": "tells whether an item may be in a sketch; false is certain",
    "union": "unites two sketches",
    "intersect": "gives the sketch of what two sketches have in common",
    "subtract": "gives the sketch of what the first has and the other has not",
    "compare": "gives union, intersection, difference and Jaccard index of two sketches, with bounds",
    "print": "describes a sketch in words",
    "to_spark": "writes a sketch in the form that Spark's own functions read",
    "from_spark": "reads the form that Spark's own function writes",
}
"""What the functions of each verb do."""

Arguments = dict[str, pa.Array]


@dataclass(frozen=True, slots=True)
class SqlFunction:
    """One function: its name, arguments, result and description.

    `columns` are the required arguments, `options` the optional ones with their defaults; the default None
    depends on the sketch. `work` is called with the arguments as Arrow arrays by name.
    """

    name: str
    verb: str
    line: Family
    columns: tuple[str, ...]
    options: Mapping[str, Any]
    returns: pa.DataType
    work: Callable[[Arguments], Any] = field(repr=False)

    @property
    def aggregates(self) -> bool:
        """Whether it aggregates a group's rows to one value."""
        return self.verb in ("sketch", "merge")

    @property
    def must_name_kind(self) -> bool:
        """Whether its name lacks the kind of items that is needed to read bytes."""
        reads = self.verb not in ("sketch", "from_spark")
        return reads and self.line.aggregate.must_name_kind and self.name == f"{self.verb}_{self.line.name}"

    @property
    def usage(self) -> str:
        """The function's signature.

        >>> catalogue()["sketch_distinct"].usage, catalogue()["answer_quantiles"].usage
        ('sketch_distinct(column, lg_k=12)', 'answer_quantiles(sketch, q=None)')
        """
        return f"{self.name}{signature(self.columns, self.options)}"

    @property
    def says(self) -> str:
        """What the function does, and its family.

        >>> catalogue()["merge_cpc"].says
        'aggregates sketches into one (the number of distinct values, in the fewest bytes: CPC)'
        >>> catalogue()["merge_top_k"].says
        "is refused, as bytes don't say the kind: write merge_top_k_KIND, with string, long, double or binary"
        """
        if self.must_name_kind:
            *others, last = self.line.aggregate.kinds
            kinds = f"{', '.join(others)} or {last}"
            return f"is refused, as bytes don't say the kind: write {self.name}_KIND, with {kinds}"
        about = (getdoc(aggregate_function(self.line.name)) or "").partition("\n\n")[0].replace("\n", " ")
        about = about.partition(";")[0].rstrip(".")
        return f"{VERBS[self.verb]} ({about[0].lower()}{about[1:]})"

    @property
    def result(self) -> str:
        """The SQL type of the result.

        >>> catalogue()["answer_distinct"].result
        'struct<estimate:double,lower:double,upper:double>'
        """
        return from_arrow_type(self.returns).simpleString()

    def run(self) -> Callable[..., Any]:
        """The function that runs in a worker; from its type hints Spark infers whether it aggregates."""
        name, columns, options, work = self.name, self.columns, dict(self.options), self.work

        def aggregated(*given: pa.Array, **named: pa.Array) -> bytes:
            freeze_imports()
            with raised_alone():
                return work(bound(name, columns, options, given, named))

        def scalar(*given: pa.Array, **named: pa.Array) -> pa.Array:
            freeze_imports()
            with raised_alone():
                return work(bound(name, columns, options, given, named))

        function = aggregated if self.aggregates else scalar
        function.__name__ = function.__qualname__ = name
        return function


def catalogue() -> Mapping[str, SqlFunction]:
    """Return all functions by name; those of stored families only if their extra is installed.

    >>> [n for n in catalogue() if n.split("_", 1)[1] == "membership"]  # doctest: +NORMALIZE_WHITESPACE
    ['sketch_membership', 'merge_membership', 'answer_membership', 'contains_membership', 'union_membership',
     'intersect_membership', 'print_membership']
    """
    lines = [line for line in FAMILIES.values() if not line.exact and line.installed]
    return {function.name: function for line in lines for function in _functions(line)}


def _functions(line: Family) -> Iterator[SqlFunction]:
    binary = pa.binary()
    # A different salt for each driver, so that the samples of two drivers are independent.
    sketching = partial(sketch_of, line.name, TaskSeeds(secrets.randbits(32)))
    columns, options = ("column", *line.inputs), _options(line)
    yield SqlFunction(f"sketch_{line.name}", "sketch", line, columns, options, binary, sketching)
    reading = dict.fromkeys(read_options(line))
    for kind in ("", *line.aggregate.kinds):
        name = "_".join(filter(None, ("merge", line.name, kind)))
        work: Callable[[Arguments], Any] = partial(merged, line.name, kind)
        yield SqlFunction(name, "merge", line, ("sketch",), reading, binary, work)
    for verb in VERBS:
        for kind in ("", *item_kinds(line)):
            question = question_of(verb, line, kind)
            if question is None:
                continue
            name = "_".join(filter(None, (verb, line.name, kind)))
            work = partial(answers_each, verb, line.name, kind)
            given = {**question.options, **reading}
            yield SqlFunction(name, verb, line, ("sketch", *question.columns), given, question.returns, work)
    if line.name == "top_k":
        yield SqlFunction("from_spark_top_k", "from_spark", line, ("state",), {}, binary, read_states)


def _options(line: Family) -> dict[str, Any]:
    """Return the parameters of a family's sketches, in the order of the Python signature."""
    order = signature_of(aggregate_function(line.name)).parameters
    options = {name: line.params[name] for name in order if name in line.params}
    return {**options, **dict.fromkeys(line.optional)}
