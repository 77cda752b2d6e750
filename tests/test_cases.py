"""Cases in one test: all of them run, and each that fails is named beside its error."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from .cases import each

TRIED: list[int] = []


@each("number", [1, pytest.param(2, id="two"), 3])
def odd(number: int) -> None:
    TRIED.append(number)
    assert number % 2


@each(("one", "other"), [(1, 2), (3, 3), (4, 5), (4, 6)], by=lambda one, other: "high" if one > 3 else "low")
@each("factor", [2, 3])
def unequal(one: int, other: int, factor: int) -> None:
    with pytest.raises(ZeroDivisionError):
        _ = factor / (one * factor - other * factor)


def test_all_run_and_those_that_fail_are_named() -> None:
    TRIED.clear()
    with pytest.raises(ExceptionGroup, match="1 of 3 cases fail: two") as failed:
        odd()
    assert TRIED == [1, 2, 3]
    (error,) = failed.value.exceptions
    assert isinstance(error, AssertionError) and error.__notes__ == ["case: two"]


def test_what_does_not_raise_fails_too() -> None:
    with pytest.raises(BaseExceptionGroup, match="1 of 2 cases fail: 1-2") as failed:
        unequal(part="low")
    (inner,) = failed.value.exceptions
    assert isinstance(inner, BaseExceptionGroup) and "2 of 2 cases fail: 2, 3" in str(inner)


def test_each_part_is_a_test() -> None:
    assert [*inspect.signature(unequal).parameters] == ["part"]
    (mark,) = unequal.pytestmark  # type: ignore[attr-defined]
    assert [*mark.args[1]] == ["low", "high"]
    assert [*inspect.signature(odd).parameters] == []


def test_a_test_is_skipped_if_all_of_its_cases_are() -> None:
    @each("number", [1, 2])
    def skips(number: int, last: int) -> None:
        if number <= last:
            pytest.skip("not here")

    skips(last=1)
    with pytest.raises(pytest.skip.Exception, match="not here"):
        skips(last=2)


@each("name", ["a", "b"])
def test_fixtures_come_as_ever(name: str, tmp_path: Path) -> None:
    (tmp_path / name).touch(exist_ok=False)


def test_a_table_without_cases_is_refused() -> None:
    @each("name", list)
    def nothing(name: str) -> None: ...

    with pytest.raises(ValueError, match="no cases of name"):
        nothing()


def test_cases_may_be_built_when_the_test_runs() -> None:
    calls: list[int] = []

    @each("number", lambda: [calls.append(1), 2][1:])
    def small(number: int) -> None:
        assert number == 2

    assert calls == []
    small()
    assert calls == [1]
