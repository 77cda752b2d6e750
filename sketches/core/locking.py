"""One lock a sketch, so that threads may share it.

Kernels give up the interpreter's lock while they run, so two threads in one sketch would write over each
other's arrays. Every public method and operator of a class below `Shared` therefore holds the sketch's own
lock: threads that update different sketches run at once, those that share one take turns, and each sees it
before or after another's call, never amid it.

A method that takes another sketch as `other` holds both locks, always in the same order, so that
``a.merge(b)`` beside ``b.merge(a)`` can't wait for each other for ever. Iterators are read to their end
before the lock is taken, so that no thread waits for what they wait for.

A method is called with the arguments it names, or refused in words that name them.

Locks belong to a process. One that forks while another thread is amid a call leaves a torn sketch to its
child, whose first use of it raises `RuntimeError` rather than waiting for a thread that isn't there.
"""

from __future__ import annotations

import copy
import functools
import inspect
import os
import threading
from collections.abc import Callable, Iterable
from types import FunctionType, GeneratorType
from typing import Any, TypeVar

_OPERATORS = frozenset(
    f"__{name}__"
    for name in ("and", "bytes", "contains", "eq", "getitem", "len", "or", "reduce", "repr", "sub")
)
_PREFIX = "_lock_after_fork_"
_lock = f"{_PREFIX}0"
"""The attribute that holds a sketch's lock; a forked child names, and so makes, its own."""
_making = threading.Lock()

Method = TypeVar("Method", bound=Callable[..., Any])


def _reset_after_fork() -> None:
    global _lock, _making
    _lock = f"{_PREFIX}{int(_lock.removeprefix(_PREFIX)) + 1}"
    _making = threading.Lock()


os.register_at_fork(after_in_child=_reset_after_fork)


class Shared:
    """What threads may share: see above. Subclasses need do nothing but keep their state in their instances.

    >>> from ..hll import HLL
    >>> import inspect
    >>> list(inspect.signature(HLL.bounds).parameters)
    ['self', 'std_devs']
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, member in list(vars(cls).items()):
            if name not in _OPERATORS and name.startswith("_"):
                continue
            if isinstance(member, property) and member.fget:
                setter = member.fset and _locked(member.fset)
                setattr(cls, name, property(_locked(member.fget), setter, doc=member.__doc__))
            elif isinstance(member, FunctionType):
                setattr(cls, name, _locked(member))

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the lock, as it is between two calls of other threads."""
        with _lock_of(self):
            state = {name: value for name, value in vars(self).items() if not name.startswith(_PREFIX)}
            return copy.deepcopy(state, {id(self): self})


def holding_no_lock(method: Method) -> Method:
    """Mark a method that calls back into the caller's code, which may wait for other sketches."""
    method.__dict__["holds_no_lock"] = True
    return method


def _lock_of(sketch: Shared) -> Any:
    return vars(sketch).get(_lock) or _new_lock(sketch)


def _new_lock(sketch: Shared) -> Any:
    """The sketch's first lock in this process. Raises `RuntimeError` where one was held amid the fork."""
    held = vars(sketch)
    with _making:
        for name in [name for name in list(held) if name.startswith(_PREFIX) and name != _lock]:
            if not held[name].acquire(blocking=False):
                raise RuntimeError(
                    f"another thread was using this {type(sketch).__name__} when the process forked; "
                    "make a copy before forking, and use that in the child"
                )
            del held[name]
        return held.setdefault(_lock, threading.RLock())


def _locked(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method, holding the sketch's lock, and that of `other` if it has such a parameter."""
    if getattr(method, "__isabstractmethod__", False) or getattr(method, "holds_no_lock", False):
        return method

    parameters = inspect.signature(method).parameters
    anything = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    names = frozenset(parameters) - {"self"}

    @functools.wraps(method)
    def locked(self: Shared, *args: Any, **kwargs: Any) -> Any:
        for given in args:
            if type(given) in _LAZY:
                args = tuple(map(_read, args))
        if kwargs:
            if not (anything or kwargs.keys() <= names):
                raise _unknown(self, method, kwargs.keys() - names)
            kwargs = {name: _read(given) for name, given in kwargs.items()}
        with self.__dict__.get(_lock) or _new_lock(self):
            return method(self, *args, **kwargs)

    @functools.wraps(method)
    def locked_with_other(self: Shared, other: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(other, Shared) or other is self:
            with _lock_of(self):
                return method(self, other, *args, **kwargs)
        first, second = sorted((_lock_of(self), _lock_of(other)), key=id)
        with first, second:
            return method(self, other, *args, **kwargs)

    return locked_with_other if "other" in parameters else locked


def _unknown(sketch: Shared, method: Callable[..., Any], names: Iterable[str]) -> TypeError:
    """The error for arguments of names that a method doesn't take."""
    takes = ", ".join(list(inspect.signature(method).parameters)[1:])
    called = f"{type(sketch).__name__}.{method.__name__}()"
    return TypeError(f"{called} takes {takes or 'no arguments'}, got {', '.join(sorted(names))}")


def _read(given: Any) -> Any:
    """The values of an iterator that may run the caller's code, anything else as it is."""
    return list(given) if type(given) in _LAZY else given


_LAZY = frozenset((GeneratorType, map, filter, zip))
