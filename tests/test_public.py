"""Everything public says what a stranger must know, in its docstring.

- Each name, method and property has a docstring.
- Each function and class has an example; the methods of a class may share the class's. `test_docs.py` and
  `test_live_examples.py` run them.
- What returns an estimate, or requests one, names the error and its confidence; what is exact says so.
- What raises says so by the error's name, in its own docstring, its class's or its module's.
- A sketch or a sample names its source.
- No parameters without names (``**options: Any``).
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from functools import cache
from typing import Any

import streamgauge
from streamgauge import errors, formats, rules, spark, stored
from streamgauge.operators.consumer.supervision.stream_results import StreamResults
from streamgauge.operators.families import FAMILIES

from .cases import each

MODULES = [streamgauge, errors, formats, rules, spark, stored]

# Given by public functions, or to methods of public classes, which show the example.
GIVEN = [
    *(spark.Batch, spark.Running, spark.Sessions, spark.Sketching, spark.Windows, StreamResults),
    *(rules.Measured, rules.Row, rules.Rule),
]

ERROR = re.compile(r"\b(errors?|within|off by|at most|bounds?|[Ee]xact(ly)?)\b")
CONFIDENCE = re.compile(
    r"\d %|\bsigma\b|\balways\b|\bcertain|\bstandard deviation|\bconfidence|\bprobability|\b[Ee]xact"
)
NONE = "No error is promised"


def offered() -> Iterator[Any]:
    """Every function and class of every public module."""
    for name in dir(streamgauge):
        if name != "__version__" and not inspect.ismodule(thing := getattr(streamgauge, name)):
            yield thing
    for module in MODULES[1:]:
        yield from (getattr(module, name) for name in module.__all__)


def public() -> Iterator[tuple[str, Any, type | None]]:
    """Everything public, by a name: functions, classes, and methods where they are defined."""
    seen = set()
    for thing in dict.fromkeys([*offered(), *GIVEN]):
        yield _shown(thing), thing, None
        if not inspect.isclass(thing):
            continue
        for owner in thing.__mro__:
            if not owner.__module__.startswith("streamgauge."):
                continue
            for name, member in vars(owner).items():
                function = _function(member)
                if not name.startswith("_") and function is not None and function not in seen:
                    seen.add(function)
                    yield f"{_shown(owner)}.{name}", function, owner


def _shown(thing: Any) -> str:
    """A name to identify it by: sinks of both engines are called alike."""
    engine = "spark." if thing.__module__.startswith("streamgauge.spark_udafs") else ""
    return f"{engine}{thing.__qualname__}"


def _function(member: Any) -> Any:
    if isinstance(member, property):
        return member.fget
    if isinstance(member, (classmethod, staticmethod)):
        return member.__func__
    return member if inspect.isfunction(member) else None


PUBLIC = {name: (thing, owner) for name, thing, owner in public()}


def lacks(name: str) -> set[str]:
    """What the docstring of a public name fails to say."""
    thing, owner = PUBLIC[name]
    text = _doc(thing, owner, name)
    result = set()
    if not text:
        result.add("docstring")
    if owner is None and thing not in GIVEN and ">>>" not in text and not _shown_otherwise(thing):
        result.add("example")
    if _estimates(thing) and not (ERROR.search(text) and CONFIDENCE.search(text)) and NONE not in text:
        result.add("error and confidence")
    reported = f"{text} {inspect.getdoc(owner) if owner else ''} {sys.modules[thing.__module__].__doc__}"
    result |= {f"raises {error}" for error in _raised(thing) if error not in reported}
    if _is_family(thing) and "Source:" not in text:
        result.add("source")
    if _takes_anything(thing):
        result.add("names of parameters")
    return result


def _doc(thing: Any, owner: type | None, name: str) -> str:
    if owner is not None:
        thing = getattr(owner, name.rpartition(".")[2])
    elif inspect.isclass(thing):
        return inspect.cleandoc(thing.__doc__ or "")
    return inspect.getdoc(thing) or ""


def _shown_otherwise(thing: Any) -> bool:
    """Whether one of a class's methods has an example, or it is an error."""
    if not inspect.isclass(thing):
        return False
    members = (getattr(member, "__doc__", None) or "" for member in vars(thing).values())
    return issubclass(thing, Exception) or any(">>>" in text for text in members)


def _is_family(thing: Any) -> bool:
    return any(not line.exact and line.sketch_class() is thing for line in FAMILIES.values())


def _estimates(thing: Any) -> bool:
    if thing in (streamgauge.query, streamgauge.compare):
        return True
    return _is_family(thing) or (inspect.isfunction(thing) and _aggregates(thing))


def _aggregates(thing: Any) -> bool:
    return thing.__module__.startswith("streamgauge.operators.definition.aggregates") and (
        thing.__name__ in FAMILIES
    )


def _takes_anything(thing: Any) -> bool:
    function = thing.__init__ if inspect.isclass(thing) else thing
    if not inspect.isfunction(function) or getattr(thing, "_is_protocol", False):
        return False
    parameters = inspect.signature(function).parameters.values()
    return any(p.kind is p.VAR_KEYWORD and p.annotation in ("Any", Any, p.empty) for p in parameters)


def _raised(thing: Any) -> set[str]:
    """The errors that a call raises, by itself or by helpers in its module."""
    if inspect.isclass(thing):
        if getattr(thing, "_is_protocol", False):
            return set()
        made = [vars(thing)[name] for name in ("__init__", "__post_init__") if name in vars(thing)]
        return set().union(*(_raised(function) for function in made if inspect.isfunction(function)))
    if thing.__code__.co_filename == "<string>":  # a dataclass's own
        return set()
    tree = ast.parse(textwrap.dedent(inspect.getsource(thing)))
    return _errors(tree, thing.__module__, set())


def _errors(tree: ast.AST, module: str, visited: set[str]) -> set[str]:
    helpers = _helpers(module)
    result = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            name = ast.unparse(node.exc.func).rpartition(".")[2]
            if name.endswith("Error") and name != "NotImplementedError":
                result.add(name)
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
            called = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            own = isinstance(node.func, ast.Name) or ast.unparse(node.func.value) in ("self", "cls")
            if own and called in helpers and called not in visited:
                visited.add(called)
                result |= _errors(helpers[called], module, visited)
    return result


@cache
def _helpers(module: str) -> dict[str, ast.AST]:
    """The functions of a module, and its classes' private methods."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return {node.name: node for node in functions if node in tree.body or node.name.startswith("_")}


@each("name", PUBLIC)
def test_a_public_name_says_what_a_stranger_must_know(name: str) -> None:
    assert lacks(name) == set()
