"""One test for a whole table of cases: all of them run, and those that fail are listed together.

A test for each case costs pytest a few milliseconds and xdist as many again, which thousands of quick cases
add up to minutes.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from _pytest.mark import ParameterSet

Test = Callable[..., None]
Cases = dict[str, dict[str, Any]]
"""The arguments of each case, by the case's name."""


def seeds(few: int, many: int) -> list[Any]:
    """The seeds 0 … `many` − 1 for `pytest.mark.parametrize`, from `few` on as campaigns for `make soak`."""
    return [*range(few), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(few, many))]


def each(
    names: str | Sequence[str],
    cases: Iterable[Any] | Callable[[], Iterable[Any]],
    ids: Iterable[str] | Callable[[Any], object] | None = None,
    by: Callable[..., object] | None = None,
) -> Callable[[Test], Test]:
    """Run a test on every case, like `pytest.mark.parametrize`, but as one test.

    `cases` may be a function: what takes long to build is then built when the test runs, not whenever tests
    are collected. With `by`, a function of a case's arguments, there is one test for each of its results, so
    that `-k` can choose among them. A test with fixtures gets the same ones for all cases: none may leave
    anything in them. A case that skips is passed over unless all do.
    """
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)

    def one_test(test: Test) -> Test:
        @functools.wraps(test)
        def all_cases(**fixtures: Any) -> None:
            _run(test, _named(names, cases() if callable(cases) else cases, ids), fixtures)

        return _taking(all_cases, test, names)

    def test_by_part(test: Test) -> Test:
        assert by and not callable(cases), "the parts must be known when tests are collected"
        parts: dict[str, Cases] = {}
        for name, arguments in _named(names, cases, ids).items():
            parts.setdefault(str(by(**arguments)), {})[name] = arguments

        @functools.wraps(test)
        def all_cases(part: str, **fixtures: Any) -> None:
            _run(test, parts[part], fixtures)

        return pytest.mark.parametrize("part", parts)(_taking(all_cases, test, names, "part"))

    return test_by_part if by else one_test


def _taking(all_cases: Test, test: Test, names: list[str], *added: str) -> Test:
    """The same, telling pytest which fixtures it takes: those of the test that are not in the table."""
    signature = inspect.signature(test)
    taken = [parameter for name, parameter in signature.parameters.items() if name not in names]
    taken += [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in added]
    vars(all_cases)["__signature__"] = signature.replace(parameters=taken)
    return all_cases


def _named(names: list[str], cases: Iterable[Any], ids: Any) -> Cases:
    result: Cases = {}
    named = None if ids is None or callable(ids) else iter(ids)
    for case in cases:
        values = case.values if isinstance(case, ParameterSet) else case if names[1:] else [case]
        if isinstance(case, ParameterSet) and case.marks:
            raise ValueError(f"a case has no marks of its own, got {case}")
        if named is not None:
            name = next(named)
        elif isinstance(case, ParameterSet) and case.id:
            name = str(case.id)
        else:
            name = "-".join(str((ids or _shown)(value)) for value in values)
        unique, again = name, 1
        while unique in result:
            again += 1
            unique = f"{name} ({again})"
        result[unique] = dict(zip(names, values, strict=True))
    if not result:
        raise ValueError(f"no cases of {', '.join(names)}")
    return result


def _shown(value: Any) -> str:
    text = getattr(value, "__name__", None) or (value if isinstance(value, str) else repr(value))
    return text if len(text) < 60 else f"{text[:57]}..."


def _run(test: Test, cases: Cases, fixtures: dict[str, Any]) -> None:
    errors: dict[str, BaseException] = {}
    skipped: list[BaseException] = []
    for name, arguments in cases.items():
        try:
            test(**arguments, **fixtures)
        except pytest.skip.Exception as skip:
            skipped.append(skip)
        except (Exception, BaseExceptionGroup, pytest.fail.Exception) as error:
            error.add_note(f"case: {name}")
            errors[name] = error
    if errors:
        listed = ", ".join(errors)
        raise BaseExceptionGroup(f"{len(errors)} of {len(cases)} cases fail: {listed}", [*errors.values()])
    if len(skipped) == len(cases):
        raise skipped[0]
