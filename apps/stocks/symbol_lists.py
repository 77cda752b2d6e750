"""Lists of symbols, by name or wildcard, in a setting or in a file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import polars as pl

_WILD = re.compile(r"[*?]")


@dataclass(frozen=True)
class SymbolList:
    """A list of wanted symbols and, after ``!``, of unwanted ones; without wanted ones, all others are
    wanted.

    ``*`` stands for any text, ``?`` for one character. Names are looked up, so thousands cost no more than
    one.

    >>> listed = SymbolList(("BTC*", "ETHUSDT", "!*DOWN*"))
    >>> [name in listed for name in ("BTCUSDT", "ETHUSDT", "ETHBTC", "BTCDOWNUSDT")]
    [True, True, False, False]
    """

    entries: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str, setting: str) -> SymbolList:
        """Parse text like ``AAPL,BRK.*,!*.WS``; ``@list.txt`` is a file, one entry per line, ``#`` before
        remarks.

        Raises `ValueError`, naming the setting, for a file that can't be read or an entry without a name.
        """
        entries: list[str] = []
        for part in (part.strip() for part in text.split(",")):
            if part.startswith("@"):
                entries += _lines(part[1:], setting)
            elif part:
                entries.append(part)
        if "!" in entries:
            raise ValueError(f"--set {setting}: '!' names no symbol; write !NAME for one that is not wanted")
        return cls(tuple(entries))

    def __contains__(self, symbol: str) -> bool:
        return self._in(symbol, *self._wanted, True) and not self._in(symbol, *self._unwanted, False)

    def matches(self, symbol: pl.Expr) -> pl.Expr | None:
        """Return whether a column's symbols are in the list; None if all symbols are."""
        if not self.entries:
            return None
        wanted = _matching(symbol, *self._wanted)
        unwanted = _matching(symbol, *self._unwanted)
        within = pl.lit(True) if wanted is None else wanted
        return within if unwanted is None else within & ~unwanted

    @cached_property
    def _wanted(self) -> tuple[frozenset[str], re.Pattern[str] | None]:
        return _parts(one for one in self.entries if not one.startswith("!"))

    @cached_property
    def _unwanted(self) -> tuple[frozenset[str], re.Pattern[str] | None]:
        return _parts(one[1:] for one in self.entries if one.startswith("!"))

    @staticmethod
    def _in(symbol: str, names: frozenset[str], wild: re.Pattern[str] | None, otherwise: bool) -> bool:
        if not names and wild is None:
            return otherwise
        return symbol in names or (wild is not None and wild.match(symbol) is not None)


def _parts(entries: Iterable[str]) -> tuple[frozenset[str], re.Pattern[str] | None]:
    listed = list(entries)
    wild = [_expression(one) for one in listed if _WILD.search(one)]
    names = frozenset(one for one in listed if not _WILD.search(one))
    return names, re.compile(f"^(?:{'|'.join(wild)})$") if wild else None


def _expression(wildcard: str) -> str:
    parts = (
        ".*" if part == "*" else "." if part == "?" else re.escape(part)
        for part in re.split(r"([*?])", wildcard)
    )
    return "".join(parts)


def _matching(symbol: pl.Expr, names: frozenset[str], wild: re.Pattern[str] | None) -> pl.Expr | None:
    tests = [symbol.is_in(sorted(names))] if names else []
    tests += [symbol.str.contains(wild.pattern)] if wild is not None else []
    return pl.any_horizontal(tests) if tests else None


def _lines(name: str, setting: str) -> list[str]:
    path = Path(name)
    try:
        return _listed(path, path.stat().st_mtime_ns)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ValueError(f"--set {setting}=@{name}: {reason}") from None


@lru_cache(maxsize=16)
def _listed(path: Path, changed_ns: int) -> list[str]:
    lines = (line.partition("#")[0] for line in path.read_text().splitlines())
    return [part.strip() for line in lines for part in line.split(",") if part.strip()]
