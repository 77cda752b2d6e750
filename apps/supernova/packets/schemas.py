"""The schemas that packets in Confluent's wire format were written with, by their numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ....operators.formats.avro_reading import reading
from ....operators.formats.avro_schema import load
from ....operators.formats.per_message import Read
from ....operators.formats.registry import FRAME, Registry, UnknownSchema, refusing


@dataclass(frozen=True)
class Schemas:
    """Schemas of a registry or, without one, of the package `lsst-alert-packet`, whose 9.0 is number 900."""

    registry: Registry | None
    _known: dict[int, Read] = field(default_factory=dict)

    def reading(self, number: int) -> Read:
        """Reads packets of that schema, or refuses them if there is none.

        Raises `ImportError` without a registry and without the package, `Unavailable` where the registry
        can't be queried.
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


def packaged() -> Path:
    """The folder of the package's schemas. Raises `ImportError`, saying what to install."""
    try:
        from lsst.alert import packet
    except ImportError:
        raise ImportError(
            "Rubin's packets name the schema they were written with: install the package that has them, by "
            "pip install 'streamgauge[rubin]', or name a registry by --set registry=URL"
        ) from None
    return Path(packet.__file__).parent / "schema"
