"""The formats of alerts: ZTF's packets, raw or enriched by Fink, and Rubin's."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from pyarrow import ArrowInvalid

from ...operators.definition.stream import Stream
from ...operators.formats.registry import Registry
from ..app import AppFormat, Feed, Message, Settings
from ..recordings.compressed_files import opened
from .alerts import alerts
from .catalogs.cross_match import Crossing
from .flat_tables import flat_table_of
from .packets.decoder import CONTAINER, Packets, Survey, schema_name
from .packets.schemas import NoSchemas, packaged, schemas_of
from .packets.scores import scores_of
from .packets.ztf import survey_of_schema
from .recordings import archived, messages

_PARQUET = b"PAR1"
_WITHIN = "within"
"""The setting `schema` of a topic whose packets all include their schema."""


def packets(survey: Survey, settings: Settings) -> Packets:
    """Return the decoder of a survey's messages.

    Raises `OSError` or `ValueError` for files without a schema, and for an invalid address of a registry.
    """
    address, files = settings.get("registry"), settings.get("schema", "")
    schemas = tuple(one.strip() for one in files.split(",") if one.strip() not in ("", _WITHIN))
    schemas_of(schemas)
    return Packets(survey, Registry.of(address) if address else None, schemas, scores_of(settings))


def _validate_rubin_live(settings: Settings) -> None:
    """Refuse a live run that couldn't read any of the survey's own packets. Raises `NoSchemas`."""
    if settings["registry"] or settings["schema"]:
        return
    try:
        packaged()
    except NoSchemas as error:
        raise NoSchemas(
            f"{error}. If all packets of this topic have their schema with them, as containers and JSON do, "
            f"say --set schema={_WITHIN}"
        ) from None


def _rubin_messages(path: Path, settings: Settings) -> Iterator[Message]:
    """Read the messages of a recording. Raises `NoSchemas` if its schema can't be found."""
    decoder = packets("rubin", settings)
    with opened(path) as file:
        framed = file.read(1) == b"\0"
    if framed and decoder.registry is None and not decoder.schemas:
        packaged()
    return messages(path, decoder)


def _rows(survey: Survey, feed: Feed, settings: Settings) -> Stream:
    """Return the rows of a survey, timed by when messages were sent: an alert days after its night isn't
    late."""
    source = feed.stream(packets(survey, settings))
    everything, crossing = bool(settings["watch"]), Crossing.of(settings)
    return alerts(source, survey, settings["cuts"], everything, crossing, scores_of(settings))


def _is_ztf(path: Path, head: bytes) -> bool:
    if ".tar" in path.suffixes and tarfile.is_tarfile(path):
        head = next(archived(path), b"")
    if not head.startswith(CONTAINER) or b"prv_candidate" not in head:
        return False
    if (survey := survey_of_schema(schema_name(head))) is not None:
        raise ValueError(
            f"{path} has alerts of {survey}; they have the format of ZTF's, but ZTF's cuts don't suit them, "
            "and no others exist here"
        )
    return True


def _is_fink(path: Path, head: bytes) -> bool:
    return _has(path, head, "candidate")


_SURVEYS = {"candidate": "ztf", "diaSource": "rubin"}
"""Surveys by the field that identifies their packets."""


def _has(path: Path, head: bytes, name: str) -> bool:
    """Whether a table or a JSON object has a field with a name, or is a flat table of that field's survey."""
    if head.startswith(_PARQUET):
        import pyarrow.parquet as parquet

        try:
            names = parquet.read_schema(path).names
        except ArrowInvalid as error:
            raise ValueError(f"{path} begins as Parquet, and can't be read: {error}") from None
        kind = flat_table_of(names)
        return name in names or (kind is not None and kind.survey == _SURVEYS[name])
    return head.lstrip().startswith(b"{") and f'"{name}"'.encode() in head


def _is_rubin(path: Path, head: bytes) -> bool:
    if head.startswith(CONTAINER):
        return b"diaSource" in head
    if _has(path, head, "diaSource"):
        return True
    # Confluent's frame and the schema's number: 900 is version 9.0.
    return head[:3] == b"\0\0\0" and 300 <= int.from_bytes(head[1:5], "big") < 10_000


FORMATS = (
    AppFormat(
        "ztf",
        "ZTF's packets: Avro containers, one alert each",
        partial(_rows, "ztf"),
        _is_ztf,
        lambda path, settings: messages(path, packets("ztf", settings)),
        {"cuts": "bts"},
    ),
    AppFormat(
        "fink",
        "ZTF's alerts as Fink enriches them: Avro whose key is its schema, JSON, files of Parquet",
        partial(_rows, "ztf"),
        _is_fink,
        lambda path, settings: messages(path, packets("ztf", settings)),
        {"cuts": "bts"},
    ),
    AppFormat(
        "rubin",
        "Rubin's packets: Avro in the wire format of a schema registry, containers, JSON, Parquet",
        partial(_rows, "rubin"),
        _is_rubin,
        _rubin_messages,
        {"cuts": "rising", "registry": "", "schema": ""},
        validate_live=_validate_rubin_live,
    ),
)
