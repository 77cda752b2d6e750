"""A reader for one writer's schema: decodes values with fastavro, protected against malicious bytes.

fastavro's compiled reader recurses in C, so a message with a recursive schema could overflow the stack: such
schemas are read by its Python version, which raises. A few bytes could claim any number of values that take
no bytes, so lists of them are refused.
"""

from __future__ import annotations

from io import BytesIO
from typing import Any

from ..per_message import Misread, Read
from ..reasons import Reason
from .blocks import check_blocks
from .schema import Names, for_reading, kind_of, load, other_times, takes_no_bytes, walk

Loaded = tuple[Any, Names]

_LONGEST = 300
"""The number of characters of an error in a reason."""


def reading(writer: Loaded, reader: Loaded, tagged: bool, begin: int = 0) -> Read:
    """A reader of messages with `writer`'s schema into values of `reader`'s, starting at byte `begin`.

    `tagged`: named types within unions come with their names. Raises `Misread` for schemas with which no
    message can be read.
    """
    reads = _library(writer).schemaless_reader
    times = other_times(*writer, *reader, frozenset())
    written, target = for_reading(writer[0], times), for_reading(reader[0], times)
    kept, wanted = _parsed(written), None if written == target else _parsed(target)
    name = _name(writer[0])

    def read(data: memoryview) -> Any:
        file = BytesIO(data)
        file.seek(begin)
        try:
            value = reads(file, kept, wanted, return_named_type=tagged)
        except Exception as error:
            kind = f"not Avro of the schema {name}"
            raise Misread(Reason(kind, f"{kind}: byte {file.tell()}: {_error_text(error)}")) from None
        if file.tell() != len(data):
            left = len(data) - file.tell()
            kind = f"not Avro of the schema {name}"
            raise Misread(Reason(kind, f"{kind}: {left} bytes too many, from byte {file.tell()}"))
        return value

    return read


def container_reading(reader: Loaded | None, tagged: bool) -> Read:
    """A reader of object container files, which contain their schema, into lists of values.

    Values have `reader`'s schema or, without one, each file's own.
    """
    wanted = None if reader is None else _parsed(reader[0])
    known: dict[str, Any] = {}

    def read(data: memoryview) -> Any:
        from fastavro import reader as compiled

        file = BytesIO(data)
        try:
            check_blocks(data)
            records = compiled(file, wanted, return_named_type=tagged)
            text = records.metadata.get("avro.schema", "")
            if text not in known:
                if len(known) > 1_000:
                    known.clear()
                known[text] = _library(load(text))
            if known[text].reader is not compiled:
                records = known[text].reader(BytesIO(data), wanted, return_named_type=tagged)
            return list(records)
        except Misread:
            raise
        except Exception as error:
            kind = "not an Avro container file"
            raise Misread(Reason(kind, f"{kind}: byte {file.tell()}: {_error_text(error)}")) from None

    return read


def _library(writer: Loaded) -> Any:
    """fastavro's reader, compiled or not. Raises `Misread` for lists of values without bytes."""
    import fastavro
    from fastavro import _read_py

    again = False
    for node, twice in walk(*writer):
        again = again or twice
        if kind_of(node) == "array" and takes_no_bytes(node["items"], writer[1]):
            raise Misread(
                "its schema has an array of values that take no bytes, so its length isn't limited by the "
                "message's"
            )
    return _read_py if again else fastavro


def _parsed(schema: Any) -> Any:
    from fastavro import parse_schema

    return parse_schema(schema)


def _name(schema: Any) -> str:
    return schema["name"] if isinstance(schema, dict) and "name" in schema else kind_of(schema)


def _error_text(error: Exception) -> str:
    if isinstance(error, IndexError):
        return "an index beyond its union's or enum's types"
    if isinstance(error, EOFError):
        return str(error).split(" from <")[0] or "it ends too early"
    text = f"{type(error).__name__}: {error}".split("\n")[0]
    # Schemas that don't match are reported with all their fields.
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
