"""The user's functions in an expression, identified by name and by a digest of their code.

Polars pickles them into its serialised form, and they are read back from there. Two functions have the same
digest if they have the same code, constants, defaults and enclosed values, wherever they are defined. Python
versions compile to different code, so digests are comparable only within one version.
"""

from __future__ import annotations

import functools
import pickle
import types
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

_PICKLED = b"\x80\x05"
_DEEP = 20
_FOLLOWED = 4


def functions_of(tree: Any) -> list[str]:
    """The names and digests of the functions in part of a serialised expression, in order.

    >>> import polars as pl
    >>> from .expression_tree import tree_of
    >>> functions_of(tree_of(pl.col("n").map_elements(abs, return_dtype=pl.Int64)).raw)
    ['abs']
    """
    return [_named(function) for blob in _blobs(tree) for function in _own(_loaded(blob), 0)]


def _blobs(node: Any) -> Iterator[bytes]:
    if isinstance(node, dict):
        for value in node.values():
            yield from _blobs(value)
    elif isinstance(node, list):
        if len(node) > _DEEP and all(isinstance(value, int) and 0 <= value < 256 for value in node):
            if (blob := bytes(node)).find(_PICKLED) >= 0:
                yield blob
        else:
            for value in node:
                yield from _blobs(value)


def _loaded(blob: bytes) -> Any:
    """Unpickle what Polars has pickled in this process, after a short prefix of its own."""
    try:
        return pickle.loads(blob[blob.find(_PICKLED) :])
    except Exception:
        return None


def _own(wrapped: Any, depth: int) -> Iterator[Any]:
    """The functions inside Polars' wrappers."""
    if depth > _DEEP or wrapped is None:
        return
    if (getattr(wrapped, "__module__", None) or "").partition(".")[0] != "polars":
        if callable(wrapped) and not isinstance(wrapped, type):
            yield wrapped
        return
    if isinstance(wrapped, types.FunctionType):
        inner = [cell.cell_contents for cell in wrapped.__closure__ or ()]
    else:
        inner = list(getattr(wrapped, "__dict__", {}).values())
    for value in inner:
        yield from _own(value, depth + 1)


def function_text(function: Any) -> str | None:
    """A function's name and digest, or a class's name; None for anything else.

    >>> function_text(int), function_text(5)
    ('int', None)
    """
    known = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, functools.partial, type)
    return _named(function) if isinstance(function, known) else None


def _named(function: Any) -> str:
    name = getattr(function, "__qualname__", type(function).__qualname__).rpartition("<locals>.")[2]
    content = _content(function, 0)
    return name if content is None else f"{name} #{sha256(content.encode()).hexdigest()[:8]}"


def _content(value: Any, depth: int) -> str | None:
    """A function's content as text; None if it isn't written in Python."""
    if isinstance(value, functools.partial):
        return f"{_content(value.func, depth)} {_plain(value.args, depth)} {_plain(value.keywords, depth)}"
    if isinstance(value, types.MethodType):
        return _content(value.__func__, depth)
    code = getattr(value, "__code__", None)
    if code is None:
        return None
    outside = {name: value.__globals__[name] for name in code.co_names if name in value.__globals__}
    kept = [cell.cell_contents for cell in value.__closure__ or ()]
    parts = (value.__defaults__, value.__kwdefaults__, kept, outside)
    return f"{_code(code)} {' '.join(_plain(part, depth) for part in parts)}"


def _code(code: types.CodeType) -> str:
    constants = [_code(one) if isinstance(one, types.CodeType) else _plain(one, 0) for one in code.co_consts]
    return f"{code.co_code.hex()} {code.co_names} {constants}"


def _plain(value: Any, depth: int) -> str:
    """A value that a function uses: the value itself if it is plain, otherwise only its type and name."""
    if depth < _DEEP and isinstance(value, (list, tuple, set, frozenset)):
        texts = [_plain(one, depth + 1) for one in value]
        return str(sorted(texts) if isinstance(value, (set, frozenset)) else texts)
    if depth < _DEEP and isinstance(value, dict):
        return str({str(key): _plain(one, depth + 1) for key, one in value.items()})
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return repr(value)
    if depth < _FOLLOWED and isinstance(value, (types.FunctionType, types.MethodType, functools.partial)):
        return _content(value, depth + 1) or ""
    return f"{type(value).__qualname__} {getattr(value, '__name__', '')}"
