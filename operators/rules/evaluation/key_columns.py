"""A rule's memory of its keys, in arrays: a place for each key, a column for each part."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..packed_bytes import packed, unpacked

_ROOM = 64


class KeyColumns:
    """Columns with a place for each remembered key; a key is its text, as in `LimitRule`.

    `rest` maps each column's name to its value for an unknown key: a number, or an array of one type. A key
    takes its text (some 60 bytes), its entry in a dictionary (some 100) and its place in the columns.

    >>> memory = KeyColumns({"seen": np.int64(-1)})
    >>> places = memory.add(['["a"]', '["b"]', '["a"]'])
    >>> memory["seen"][places] = 7, 8, 9
    >>> memory.drop(memory.find(['["b"]', '["c"]'])[:1])
    >>> memory.find(['["a"]', '["b"]']).tolist(), memory["seen"][0], len(memory)
    ([0, -1], np.int64(9), 1)
    """

    def __init__(self, rest: Mapping[str, Any]) -> None:
        self._rest = {name: np.asarray(value) for name, value in rest.items()}
        self._places: dict[str, int] = {}
        self._keys: list[str | None] = []
        self._free: list[int] = []
        self._written: tuple[np.ndarray, str] | None = None
        """The places whose keys were last stored, and their text; None once any key has changed."""
        self._columns = {name: _filled(value, _ROOM) for name, value in self._rest.items()}

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, name: str) -> np.ndarray:
        return self._columns[name]

    def __contains__(self, name: str) -> bool:
        return name in self._columns

    @property
    def size(self) -> int:
        """The number of places, used and free."""
        return len(self._keys)

    def key(self, place: int) -> str:
        """The key at a place."""
        key = self._keys[place]
        assert key is not None
        return key

    def has(self, place: int) -> bool:
        """Whether a place has a key."""
        return self._keys[place] is not None

    def find(self, keys: Iterable[str]) -> np.ndarray:
        """Each key's place, -1 for unknown keys."""
        get = self._places.get
        return np.array([get(key, -1) for key in keys], np.int64)

    def add(self, keys: Iterable[str]) -> np.ndarray:
        """Each key's place; unknown keys get a new one."""
        keys = list(keys)
        places = self.find(keys)
        for number in np.flatnonzero(places < 0).tolist():
            key = keys[number]
            place = self._places.get(key)
            if place is None:
                self._written = None
                place = self._places[key] = self._free.pop() if self._free else len(self._keys)
                if place == len(self._keys):
                    self._keys.append(key)
                else:
                    self._keys[place] = key
            places[number] = place
        self._widen()
        return places

    def drop(self, places: np.ndarray) -> None:
        """Forget the keys at these places."""
        self._written = None
        for name, value in self._rest.items():
            self._columns[name][places] = value
        for place in places.tolist():
            del self._places[self.key(place)]
            self._keys[place] = None
            self._free.append(place)

    def take(self, key: str, source: KeyColumns) -> None:
        """Copy a key's memory from another memory with the same columns; forget the key if that lacks it."""
        place = int(source.find([key])[0])
        if place < 0:
            own = self.find([key])
            self.drop(own[own >= 0])
            return
        own = self.add([key])
        for name, column in self._columns.items():
            column[own] = source[name][place]

    def copy(self) -> KeyColumns:
        """A copy with the same memory."""
        other = KeyColumns(self._rest)
        other._places, other._keys, other._free = dict(self._places), [*self._keys], [*self._free]
        other._columns = {name: column.copy() for name, column in self._columns.items()}
        return other

    def state(self, by: str | None = None) -> dict[str, Any]:
        """The whole memory as JSON: keys, sorted by a column if one is named, and each column's bytes.

        All of them are compressed. The text of the keys is reused until a key is added or dropped, because
        most checkpoints have the same keys as the one before.
        """
        places = np.fromiter(self._places.values(), np.int64, len(self._places))
        if by is not None:
            places = places[np.argsort(self._columns[by][places], kind="stable")]
        if self._written is None or not np.array_equal(self._written[0], places):
            keys = [self._keys[place] for place in places.tolist()]
            self._written = places, packed(json.dumps(keys, ensure_ascii=False).encode())
        columns = {name: _text(column[places]) for name, column in self._columns.items()}
        return {"keys": self._written[1], "columns": columns}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore the result of `state`, or of an earlier version that lists keys or lacks some columns.

        Raises `ValueError` or `KeyError` for anything else.
        """
        given = state["keys"]
        keys: Sequence[str] = json.loads(unpacked(given)) if isinstance(given, str) else given
        places = self.add(keys)
        for name, text in state["columns"].items():
            self._columns[name][places] = _column(text, self._rest[name], len(keys))

    def _widen(self) -> None:
        for name, column in self._columns.items():
            if len(column) < len(self._keys):
                more = max(len(column), len(self._keys) - len(column))
                self._columns[name] = np.concatenate([column, _filled(self._rest[name], more)])


def _filled(value: np.ndarray, room: int) -> np.ndarray:
    return np.full((room, *value.shape), value, value.dtype)


def _text(column: np.ndarray) -> str:
    return packed(np.ascontiguousarray(column, column.dtype.newbyteorder("<")).tobytes())


def _column(text: str, value: np.ndarray, keys: int) -> np.ndarray:
    return np.frombuffer(unpacked(text), value.dtype.newbyteorder("<")).reshape(keys, *value.shape)
