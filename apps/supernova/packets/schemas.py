"""The writer schemas of packets in Confluent's wire format, by their numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ....operators.formats.avro.reading import reading
from ....operators.formats.avro.schema import load
from ....operators.formats.per_message import Read
from ....operators.formats.registry import FRAME, Registry, UnknownSchema, refusing
from ....sketches.core.errors import StreamgaugeError

_VERSION = re.compile(r"lsst\.v(\d+)_(\d+)\.alert")


class NoSchemas(StreamgaugeError, ImportError):
    """No source of the packets' schemas is named, and the package with them isn't installed."""


@dataclass(frozen=True)
class Schemas:
    """Schemas from files, where `lsst.v9_0.alert` is number 900, from a registry, or from
    `lsst-alert-packet`.

    This package is under the GPL, and used only if neither files nor a registry are named.
    """

    registry: Registry | None
    files: tuple[str, ...] = ()
    _known: dict[int, Read] = field(default_factory=dict)

    def reading(self, number: int) -> Read:
        """Return the reader of packets with a schema's number, which refuses them if there is no such schema.

        Raises `NoSchemas` if no source of schemas is named and the package is missing; `OSError` or
        `ValueError` for files that aren't schemas; `Unavailable` if the registry can't be queried.
        """
        if number not in self._known:
            try:
                schema = load(self._text(number))
            except UnknownSchema as error:
                return refusing(str(error))
            except ValueError as error:
                return refusing(f"its schema {number}: {error}")
            self._known[number] = reading(schema, schema, False, FRAME)
        return self._known[number]

    def _text(self, number: int) -> Any:
        if self.files:
            by_number = schemas_of(self.files)
            if number in by_number:
                return by_number[number]
            if self.registry is None:
                names = ", ".join(str(known) for known in sorted(by_number))
                raise UnknownSchema(f"its schema {number} is in no file of --set schema, which have {names}")
        if self.registry is not None:
            return self.registry.schema(number).schema_str
        major, minor = divmod(number, 100)
        path = packaged() / f"{major}/{minor}/lsst.v{major}_{minor}.alert.avsc"
        if not path.is_file():
            raise UnknownSchema(
                f"its schema {number}, version {major}.{minor}, is not in the installed lsst-alert-packet; "
                "upgrade that, or name a registry by --set registry=URL"
            )
        from fastavro.schema import load_schema

        return load_schema(str(path))


def schemas_of(files: Iterable[str]) -> dict[int, Any]:
    """Read schemas by number from files: an .avsc, possibly with its parts next to it, or a container.

    Raises `OSError` for a file that can't be read, `ValueError` for one without a schema of Rubin's.
    """
    by_number = {}
    for file in files:
        schema = _schema_in(Path(file))
        name = f"{schema.get('namespace', '')}.{schema.get('name', '')}".lstrip(".")
        version = _VERSION.fullmatch(schema.get("name", "")) or _VERSION.fullmatch(name)
        if version is None:
            raise ValueError(
                f"--set schema={file}: its schema is {name!r}, not one such as 'lsst.v9_0.alert'"
            )
        by_number[int(version[1]) * 100 + int(version[2])] = schema
    return by_number


def _schema_in(path: Path) -> dict[str, Any]:
    import fastavro
    from fastavro.schema import load_schema

    with path.open("rb") as file:
        container = file.read(4) == b"Obj\x01"
        file.seek(0)
        try:
            if container:
                schema = json.loads(fastavro.reader(file).metadata["avro.schema"])
            else:
                schema = load_schema(str(path))
        except Exception as error:
            reason = f"{type(error).__name__}: {str(error)[:300]}"
            raise ValueError(f"--set schema={path}: no Avro schema can be read from it: {reason}") from None
    if not isinstance(schema, dict):
        raise ValueError(f"--set schema={path}: its schema is not a record")
    return schema


def packaged() -> Path:
    """Return the folder of the package's schemas. Raises `NoSchemas` with the remedy."""
    try:
        from lsst.alert import packet
    except ImportError:
        raise NoSchemas(
            "Rubin's packets in the wire format name the schema they were written with, and don't have it: "
            "name a registry by --set registry=URL or a file by --set schema=FILE, an .avsc or a container; "
            "or install the package that has them, under the GPL, by streamgauge's extra 'rubin'"
        ) from None
    return Path(packet.__file__).parent / "schema"
