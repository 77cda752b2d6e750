"""Functions that build aggregates, looked up by the aggregate's name.

`aggregates` and `aggregates_stored` write these functions out, so that type checkers and editors know them.
For a family without one, a function with the same kind of signature is generated from its registry entry.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature, getdoc
from typing import Any

from ..families import MOMENT, Family, family
from . import aggregates, aggregates_stored
from .aggregate import Aggregate, aggregate


def aggregate_function(name: str) -> Callable[..., Aggregate]:
    """Return the function called `name`. Raises `KeyError` for a name that isn't in the registry.

    >>> aggregate_function("distinct")("user", lg_k=11) == aggregate("distinct", "user", lg_k=11)
    True
    """
    line = family(name)
    return explicit_function(name) or _made(line)


def explicit_function(name: str) -> Callable[..., Aggregate] | None:
    """Return the handwritten function for an aggregate, or None if there is none.

    >>> explicit_function("distinct").__name__, explicit_function("nothing")
    ('distinct', None)
    """
    return getattr(aggregates, name, None) or getattr(aggregates_stored, name, None)


def signature(line: Family) -> Signature:
    """The signature for requesting a family: its column, the columns of its inputs, the parameters of its
    answer and sketch, then the columns of optional inputs.

    >>> from ..families import FAMILIES
    >>> str(signature(FAMILIES["weighted_sample"]))
    "(column: 'str', weight: 'str', k: 'int' = 100) -> 'Aggregate'"
    """
    either = Parameter.POSITIONAL_OR_KEYWORD
    named = ["column", *(given for given in line.inputs if given not in MOMENT)]
    parameters = [Parameter(given, either, annotation="str") for given in named]
    for option, default in {**line.answer, **line.params}.items():
        kind = type(default).__name__
        parameters.append(Parameter(option, either, default=default, annotation=kind))
    for given in line.optional:
        parameters.append(Parameter(given, either, default=None, annotation="str | None"))
    return Signature(parameters, return_annotation="Aggregate")


def _made(line: Family) -> Callable[..., Aggregate]:
    def ask(*args: Any, **options: Any) -> Aggregate:
        given = how.bind(*args, **options).arguments
        return aggregate(line.name, given.pop("column"), **given)

    how = signature(line)
    ask.__name__ = ask.__qualname__ = line.name
    ask.__doc__ = getdoc(line.groups_class() if line.exact else line.sketch_class())
    ask.__signature__ = how  # type: ignore[attr-defined]
    return ask
