"""One lock per sketch, so that threads can share it.

Kernels release the GIL while they run, so two threads in one sketch would overwrite each other's arrays.
Therefore every public method and operator of a subclass of `Shared` holds the sketch's own lock: threads that
update different sketches run in parallel, threads that share a sketch take turns, and each sees it before or
after another thread's call, never in between.

A method with a sketch as argument `other` holds both locks, always in the same order, so that ``a.merge(b)``
and ``b.merge(a)`` can't deadlock. Iterators are exhausted before the lock is acquired, so that no thread
waits for what an iterator waits for.

A call with wrong arguments is refused with a message that names them.

Locks belong to a process. If a process forks while another thread is in a call, the child inherits a
half-updated sketch; its first use raises `RuntimeError` instead of waiting for a thread that doesn't exist.
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
"""The attribute that holds a sketch's lock; a forked child uses another name, and so a new lock."""
_making = threading.Lock()

Method = TypeVar("Method", bound=Callable[..., Any])


def _reset_after_fork() -> None:
    global _lock, _making
    _lock = f"{_PREFIX}{int(_lock.removeprefix(_PREFIX)) + 1}"
    _making = threading.Lock()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_reset_after_fork)


class Shared:
    """The base of classes that threads can share; subclasses only have to store their state in instances.

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
        """Return everything but the lock, in the state between two calls of other threads."""
        with _lock_of(self):
            state = {name: value for name, value in vars(self).items() if not name.startswith(_PREFIX)}
            return copy.deepcopy(state, {id(self): self})


def holding_no_lock(method: Method) -> Method:
    """Mark a method that calls the caller's code, which may wait for other sketches."""
    method.__dict__["holds_no_lock"] = True
    return method


def _lock_of(sketch: Shared) -> Any:
    return vars(sketch).get(_lock) or _new_lock(sketch)


def _new_lock(sketch: Shared) -> Any:
    """Create the sketch's lock in this process. Raises `RuntimeError` if it was held during the fork."""
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
    """Make a method hold the sketch's lock, and the lock of `other` if it has such a parameter."""
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
    """Return the error for argument names that a method doesn't accept."""
    takes = ", ".join(list(inspect.signature(method).parameters)[1:])
    called = f"{type(sketch).__name__}.{method.__name__}()"
    return TypeError(f"{called} takes {takes or 'no arguments'}, got {', '.join(sorted(names))}")


def _read(given: Any) -> Any:
    """Exhaust an iterator, which may run the caller's code; return anything else unchanged."""
    return list(given) if type(given) in _LAZY else given


_LAZY = frozenset((GeneratorType, map, filter, zip))
