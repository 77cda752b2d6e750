"""What every sketch can do, alone and by the thousand.

`Sketch` is one sketch. `Groups` is many of one family in one set of arrays, addressed by group number; the
table of sketches is made of them. A family is one module that defines one of each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, Self, TypeVar

from .aggregated import Aggregated
from .errors import StreamgaugeError
from .gaps import taking_gaps
from .lazy import np, pa
from .locking import Shared


class SketchError(StreamgaugeError, ValueError):
    """Bytes that are not this sketch, parameters out of range, or sketches that can't be merged.

    The message names the family, what was wrong, and what was expected.
    """


def required_kind(family: str, kind: str | None, kinds: Iterable[str]) -> str:
    """The kind of item that a caller says an image is of. Raises `SketchError` where it is left open.

    Images of some families don't say what their items are: read as another kind they would give numbers all
    the same, and wrong ones.
    """
    if kind is None:
        kind_list = " or ".join(f'"{one}"' for one in kinds)
        raise SketchError(f"{family}: an image doesn't say of what kind its items are; give kind={kind_list}")
    return kind


class Sketch(Shared, ABC):
    """One mergeable summary of a stream, with a stated error.

    Subclasses promise: `update` of any cut of a stream into batches gives what item by item gives; `merge`
    is associative and commutative, and one that saw nothing changes nothing, whatever its size parameter;
    `from_bytes(to_bytes())` gives an equal sketch; nulls are skipped; threads may share a sketch, and take
    turns (`locking`). A call that raises has changed nothing: all that is given is converted and validated
    before anything is changed. That holds for numbers too large to be counted, too: a family counts 2^62
    values or more, unless its class says otherwise, and refuses what is beyond.

    Two sketches are equal (``==``) that are of one family, have the same parameters and the same bytes. For
    some families these depend on the order of the values, too, so equal data may give unequal sketches. A
    sketch can be changed, so it can't be hashed: it can't be a key of a dict or a member of a set.
    """

    family: ClassVar[str]
    """The name in error messages and in the registry, such as ``"HLL"``."""
    item_kind: str | None = None
    """The kind of the values whose hashes it keeps, None as long as it isn't known (`item_kinds`)."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        taking_gaps(cls, at=0)
        super().__init_subclass__(**kwargs)

    @abstractmethod
    def update(self, values: Any) -> Self:
        """Add a scalar or a column of any sort that `columns.as_values` takes; returns the sketch itself.

        Further row-wise inputs have the same names in all families, alone and in groups: ``weight``,
        ``time``, ``key`` and ``value``.
        """

    @abstractmethod
    def merge(self, other: Self) -> Self:
        """Fold `other` in, in place; returns itself. Raises `SketchError` if they can't be merged."""

    @abstractmethod
    def to_bytes(self) -> bytes:
        """The sketch in the bytes its field uses."""

    @classmethod
    @abstractmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The sketch those bytes hold. Raises `SketchError` for anything else."""

    @abstractmethod
    def answer(self) -> Any:
        """The usual question's answer with its bounds, as plain Python values that JSON can hold."""

    def copy(self) -> Self:
        """An independent equal sketch."""
        return self._of_my_kind(self.from_bytes(self.to_bytes()))

    def _of_my_kind(self, other: Self) -> Self:
        """Another sketch, of the same kind of items, as bytes of others don't say it."""
        if self.item_kind is not None:
            other.item_kind = self.item_kind
        return other

    def _saw_nothing(self) -> bool:
        """Whether it is empty, so that its size parameter must not limit what it is merged with."""
        return False

    def __or__(self, other: Self) -> Self:
        if not isinstance(other, type(self)):
            return NotImplemented
        # In place, an empty sketch is as large as its owner made it; here it is one of two alike.
        first, second = (other, self) if self._saw_nothing() else (self, other)
        if first._saw_nothing():  # of two empty ones the same gives its size, whichever way round
            first, second = sorted((self, other), key=lambda one: (str(one._compared()), one.to_bytes()))
        return first.copy().merge(second)

    def __bytes__(self) -> bytes:
        return self.to_bytes()

    def _untold(self) -> tuple[Any, ...]:
        """What `from_bytes` takes beside the bytes, as they don't say it, such as the kind of item."""
        return ()

    def _compared(self) -> tuple[Any, ...]:
        """What two equal sketches have in common beside their bytes."""
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
        """The bytes, but for what they say of the kind of items, which may not be known."""
        return self.to_bytes()


Single = TypeVar("Single", bound=Sketch)
"""The sketch of one group, of arrays that the sketch itself stands on and that can't know its class."""


class Groups(Shared, ABC):
    """Many sketches of one family and one set of parameters, side by side in arrays.

    Group numbers run from 0 to ``len(self) - 1``. A group that has seen little costs little. A call that
    raises has changed nothing in any group, unless its family says so of `merge`.
    """

    aggregate: ClassVar[Aggregated] = Aggregated()
    """How the family is requested as an aggregate of a column."""
    item_kind: str | None = None
    """The kind of the values whose hashes they keep, None as long as it isn't known (`item_kinds`)."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        taking_gaps(cls, at=1)
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

        A null is skipped; of a list column every element counts towards its row's group. A family names the
        further row-wise inputs that it takes, such as ``weight``; others raise `TypeError`.
        """

    @abstractmethod
    def merge(self, groups: np.ndarray, column: pa.Array) -> None:
        """Fold serialised sketches in: `column[i]`, as `to_arrow` wrote it, into group `groups[i]`."""

    @abstractmethod
    def to_arrow(self) -> pa.Array:
        """One value a group, in group order: the sketch's bytes as `binary`, or a plain exact value."""

    @abstractmethod
    def __getitem__(self, group: int) -> Any:
        """A copy of one group as a single sketch."""

    def _kind_to(self, one: Any) -> Any:
        """A group's sketch, of the same kind of items."""
        one.item_kind = self.item_kind
        return one

    def answers(self, **question: Any) -> Any:
        """Each group's `answer`, in group order: a list, or an Arrow array of the same."""
        return [self[group].answer(**question) for group in range(len(self))]

    def shares(self) -> dict[str, np.ndarray] | None:
        """Numbers of each group (float64) whose sums over sketches limit what their union may answer.

        None where a family knows none. The answer of the union is at most `union_limits` of the sums, so that
        it can be known, without merging, which groups can't be among the largest.
        """
        return None

    def union_limits(self, sums: dict[str, np.ndarray]) -> np.ndarray:
        """At most the estimates of unions whose sketches' `shares` add up to these (float64)."""
        raise NotImplementedError
