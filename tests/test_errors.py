"""One base of all errors, and each that a public docstring names is public."""

from __future__ import annotations

import builtins
import importlib
import inspect
import pickle
import re
from collections.abc import Iterator

from streamgauge import errors, spark

from .cases import each
from .examples import modules
from .test_public import PUBLIC

RAISES = re.compile(r"[Rr]aises? ((?:,? ?(?:and |or )?`\w+`)+)")
OF_LIBRARIES = {"KafkaException"}


def own_errors() -> Iterator[type[BaseException]]:
    """The exceptions that product code defines."""
    for module in modules():
        for thing in vars(importlib.import_module(module)).values():
            if inspect.isclass(thing) and issubclass(thing, BaseException) and thing.__module__ == module:
                yield thing


OWN = {error.__name__: error for error in own_errors()}


def test_all_have_one_base() -> None:
    assert len(OWN) > 40
    assert [error for error in OWN.values() if not issubclass(error, errors.StreamgaugeError)] == []


def test_the_errors_of_a_name_are_one() -> None:
    """Without this, a second `DefinitionChanged` would not be caught as the first."""
    names = [error.__name__ for error in own_errors()]
    assert sorted(set(names)) == sorted(names)


@each("name", PUBLIC)
def test_an_error_that_a_docstring_names_is_public(name: str) -> None:
    text = inspect.getdoc(PUBLIC[name][0]) or ""
    named = {error for group in RAISES.findall(text) for error in re.findall(r"`(\w+)`", group)}
    named |= set(re.findall(r"`(\w+)`", text)) & OWN.keys()
    for error in named - OF_LIBRARIES:
        of_python = getattr(builtins, error, None)
        assert of_python or OWN[error] in vars(errors).values() or OWN[error] is getattr(spark, error, None)


def test_public_errors_are_those_that_they_are_named() -> None:
    for error in errors.__all__:
        assert getattr(errors, error).__name__ == error
    shown = set(re.findall(r"`(\w+)`", errors.__doc__)) - set(dir(builtins)) - {"deduplicate"}
    assert shown == set(errors.__all__)


def test_errors_of_python_catch_them_too() -> None:
    assert issubclass(errors.SketchError, ValueError) and issubclass(errors.TopicError, LookupError)
    assert issubclass(errors.WrongRows, TypeError) and issubclass(errors.DefinitionChanged, ValueError)
    again = pickle.loads(pickle.dumps(errors.TopicError("no such topic")))
    assert (type(again), str(again)) == (errors.TopicError, "no such topic")
