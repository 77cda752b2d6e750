"""The protocols of a sketch, and of many sketches in one set of arrays.

`Sketch` is one sketch. `Groups` is many sketches of one family in one set of arrays, addressed by group
number; tables of sketches consist of them. Each family defines one of each.
"""

from __future__ import annotations

import functools
import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Self

from .aggregated import Aggregated
from .arguments import exact_integer, plain, shown
from .columns.gaps import taking_gaps
from .errors import StreamgaugeError
from .lazy import np, pa
from .locking import Shared


class SketchError(StreamgaugeError, ValueError):
    """Bytes that are not this sketch, parameters out of range, or sketches that can't be merged.

    The message names the family, what was wrong, and what was expected.
    """


def required_kind(family: str, kind: str | None, kinds: Iterable[str]) -> str:
    """Validate the caller's kind of the items in an image. Raises `SketchError` if it is missing.

    Images of some families don't record the kind of their items: read as another kind, they would silently
    give wrong numbers.
    """
    if kind is None:
        kind_list = " or ".join(f'"{one}"' for one in kinds)
        raise SketchError(f"{family}: an image doesn't say of what kind its items are; give kind={kind_list}")
    return kind


def _of_any_buffer(read: Callable[..., Any]) -> Callable[..., Any]:
    """Make a class's `from_bytes` accept any object with bytes."""

    @functools.wraps(read)
    def reading(cls: Any, data: Any, *args: Any, **params: Any) -> Any:
        if type(data) is not bytes:
            try:
                view = memoryview(plain(data))
            except TypeError:
                view = None
            if view is None or view.format not in ("B", "b", "c"):
                raise SketchError(f"{cls.family}: an image must be bytes, got {shown(data)}")
            data = view.tobytes()
        return read(cls, data, *args, **params)

    return reading


class Sketch(Shared, ABC):
    """One mergeable summary of a stream, with a stated error.

    Subclasses promise: `update` gives the same result for any batching of a stream; `merge` is associative
    and commutative, and merging an empty sketch changes nothing, whatever its size parameter;
    `from_bytes(to_bytes())` gives an equal sketch; nulls are skipped; sketches are thread-safe, and calls are
    serialised (`locking`). A call that raises has changed nothing, because all input is converted and
    validated first. This includes counts that are too large: a family counts at least 2^62 values, unless its
    class says otherwise, and refuses more.

    Two sketches are equal (``==``) if they have the same family, parameters and bytes. In some families the
    bytes also depend on the order of the values, so equal data may give unequal sketches. Sketches are
    mutable and therefore not hashable: they can't be keys of a dict or members of a set.
    """

    family: ClassVar[str]
    """The name in error messages and in the registry, such as ``"HLL"``."""
    item_kind: str | None = None
    """The kind of the values whose hashes the sketch stores; None while it isn't known (`item_kinds`)."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        taking_gaps(cls, at=0)
        if isinstance(own := vars(cls).get("from_bytes"), classmethod):
            cls.from_bytes = classmethod(_of_any_buffer(own.__func__))  # type: ignore[assignment,method-assign]
        super().__init_subclass__(**kwargs)

    @abstractmethod
    def update(self, values: Any) -> Self:
        """Add a scalar, or a column of any sort that `columns.as_values` accepts; returns the sketch itself.

        Further row-wise inputs have the same names in all families, alone and in groups: ``weight``,
        ``time``, ``key`` and ``value``.
        """

    @abstractmethod
    def merge(self, other: Self) -> Self:
        """Merge `other` into this sketch; returns itself. Raises `SketchError` if they can't be merged."""

    @abstractmethod
    def to_bytes(self) -> bytes:
        """The sketch in the bytes that its field uses."""

    @classmethod
    @abstractmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read a sketch from its bytes. Raises `SketchError` for anything else."""

    @abstractmethod
    def answer(self) -> Any:
        """The answer to the usual question with its bounds, as plain Python values for JSON."""

    def copy(self) -> Self:
        """Return an independent equal sketch."""
        return self._of_my_kind(self.from_bytes(self.to_bytes()))

    def _of_my_kind(self, other: Self) -> Self:
        """Give another sketch this one's kind of items, which its bytes don't record."""
        if self.item_kind is not None:
            other.item_kind = self.item_kind
        return other

    def _saw_nothing(self) -> bool:
        """Whether the sketch is empty, so that its size parameter must not limit a merged result."""
        return False

    def __or__(self, other: Self) -> Self:
        if not isinstance(other, type(self)):
            return NotImplemented
        # An in-place merge keeps the size of an empty sketch; here both sketches have equal standing.
        first, second = (other, self) if self._saw_nothing() else (self, other)
        if first._saw_nothing():  # of two empty sketches, the same one determines the size in either order
            first, second = sorted((self, other), key=lambda one: (str(one._compared()), one.to_bytes()))
        return first.copy().merge(second)

    def __bytes__(self) -> bytes:
        return self.to_bytes()

    def _untold(self) -> tuple[Any, ...]:
        """Return arguments of `from_bytes` that the bytes don't record, such as the kind of item."""
        return ()

    def _compared(self) -> tuple[Any, ...]:
        """Return what two equal sketches must share besides their bytes."""
        return self._untold()

    def __reduce__(self) -> tuple[Any, ...]:
        read = type(self).from_bytes, (self.to_bytes(), *self._untold())
        return read if self.item_kind is None else (*read, (None, {"item_kind": self.item_kind}))

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self) or not isinstance(other, Sketch):
            return NotImplemented
        if None not in (kinds := {self.item_kind, other.item_kind}) and len(kinds) > 1:
            return False
        return self._compared() == other._compared() and self._image() == other._image()

    def _image(self) -> bytes:
        """Return the bytes without the kind of items, which may not be known."""
        return self.to_bytes()


@functools.cache
def _class_of_one(groups: type) -> Any:
    """Return the class of a single sketch: it is in the same package, and named without "Groups".

    The registry pairs the two the same way. They don't import each other, so either may depend on the other.
    """
    for kind in groups.__mro__:
        module, name = kind.__module__, kind.__name__.removesuffix("Groups")
        for place in (module, module.rpartition(".")[0]):
            if name != kind.__name__ and hasattr(sys.modules.get(place), name):
                return getattr(sys.modules[place], name)
    raise TypeError(
        f"{groups.__name__}: its module has no class of one sketch with the same name without Groups"
    )


_MOST_GROUPS = 1 << 40


def _number_of_groups(groups: Groups, n: Any) -> int:
    number = exact_integer(n)
    if number is None or not 0 <= number <= _MOST_GROUPS:
        message = f"n must be a whole number of groups, from 0 to {_MOST_GROUPS}"
        raise SketchError(f"{type(groups).__name__}: {message}, got {shown(n)}")
    return number


def _number_of_group(groups: Groups, group: Any) -> int:
    """Return a group's number, counted from 0; as in lists, negative numbers count from the end."""
    number, n = exact_integer(group), len(groups)
    if number is None:
        raise TypeError(f"{type(groups).__name__}: a group must be a whole number, got {shown(group)}")
    if not -n <= number < n:
        raise IndexError(f"{type(groups).__name__}: group {number} of {n}")
    return number % n


_CHECKS = (
    ("__init__", "n", _number_of_groups),
    ("resize", "n", _number_of_groups),
    ("__getitem__", "group", _number_of_group),
)
"""Parameters with the same meaning in all classes of groups, and the functions that validate them."""


def _checked(method: Callable[..., Any], parameter: str, check: Callable[..., int]) -> Callable[..., Any]:
    """Make a class's method validate that parameter with `check`."""
    names = list(inspect.signature(method).parameters)
    if parameter not in names:
        return method
    at = names.index(parameter) - 1

    @functools.wraps(method)
    def checked(self: Any, *args: Any, **kwargs: Any) -> Any:
        if len(args) > at:
            args = (*args[:at], check(self, args[at]), *args[at + 1 :])
        elif parameter in kwargs:
            kwargs = {**kwargs, parameter: check(self, kwargs[parameter])}
        return method(self, *args, **kwargs)

    return checked


class Groups(Shared, ABC):
    """Many sketches of one family and one set of parameters, side by side in arrays.

    Group numbers run from 0 to ``len(self) - 1``. A group with few values costs little. A call that raises
    has changed nothing in any group, unless the family documents otherwise for `merge`.
    """

    aggregate: ClassVar[Aggregated] = Aggregated()
    """How the family is requested as an aggregate of a column."""
    item_kind: str | None = None
    """The kind of the values whose hashes the groups store; None while it isn't known (`item_kinds`)."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        taking_gaps(cls, at=1)
        for name, parameter, check in _CHECKS:
            method = vars(cls).get(name)
            if method is not None and not getattr(method, "__isabstractmethod__", False):
                setattr(cls, name, _checked(method, parameter, check))
        super().__init_subclass__(**kwargs)

    @abstractmethod
    def __init__(self, n: int = 0, **params: Any) -> None: ...

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def resize(self, n: int) -> None:
        """Grow to `n` groups; the new ones are empty. Never shrinks."""

    @abstractmethod
    def update(self, groups: np.ndarray, values: Any, *args: Any, **inputs: Any) -> None:
        """Add values to their groups: `groups[i]` (any integer dtype) is the group of row `i`.

        A single number applies to all rows, also for further inputs. Nulls are skipped; every element of a
        list counts towards its row's group. Families define the further row-wise inputs that they accept,
        such as ``weight``; others raise `TypeError`.
        """

    @abstractmethod
    def merge(self, groups: np.ndarray, column: pa.Array) -> None:
        """Merge serialised sketches: `column[i]`, as written by `to_arrow`, into group `groups[i]`."""

    @abstractmethod
    def to_arrow(self) -> pa.Array:
        """One value per group, in group order: the sketch's bytes as `binary`, or a plain exact value."""

    @abstractmethod
    def __getitem__(self, group: int) -> Any:
        """Return a copy of one group as a single sketch."""

    @property
    def _single(self) -> Any:
        """Return the class of one group's sketch."""
        return _class_of_one(type(self))

    def _kind_to(self, one: Any) -> Any:
        """Give a group's sketch the groups' kind of items."""
        one.item_kind = self.item_kind
        return one

    def answers(self, **question: Any) -> Any:
        """Return each group's `answer`, in group order, as a list or an Arrow array."""
        return [self[group].answer(**question) for group in range(len(self))]

    def shares(self) -> dict[str, np.ndarray] | None:
        """Return numbers for each group (float64) whose sums over sketches limit the answer of their union.

        None if a family has no such numbers. The answer of the union is at most `union_limits` of the sums,
        so groups that can't be among the largest can be excluded without merging.
        """
        return None

    def union_limits(self, sums: dict[str, np.ndarray]) -> np.ndarray:
        """Return upper limits (float64) of the estimates of unions whose `shares` have these sums."""
        raise NotImplementedError
