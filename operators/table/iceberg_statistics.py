"""Theta sketches as the statistics of an Apache Iceberg table: blobs in a Puffin file.

Trino's and Spark's optimisers read a column's number of distinct values (NDV) from there, and Trino merges
the sketch with those of rows that it adds. A blob is the compact image that `Theta` writes anyway. Iceberg
hashes the bytes of a value's single-value serialisation, which DataSketches' `update` of a number doesn't do
for types of four bytes or one. Such columns are refused, because a union with other engines' sketches would
count each value twice.

Source: Iceberg's specifications of tables (Table Statistics, appendix D) and of Puffin.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from typing import Any, NamedTuple

from ...sketches.core.extras import naming_extras
from ...sketches.core.lazy import pa
from ...sketches.core.protocol import SketchError
from ...sketches.theta import Theta
from .schema import ArrowStream, aggregates_of, arrow_table

_MAGIC = b"PFA1"
_THETA = "apache-datasketches-theta-v1"
_HASHED_ALIKE = {
    "long": "long",
    "double": "double",
    "string": "string",
    "binary": "string",
    "timestamp": "timestamp",
    "timestamptz": "timestamp",
}
"""Iceberg's types whose serialisation is what `Theta` hashes, with our item kind for each."""


class _Blob(NamedTuple):
    field: int
    ndv: int
    image: bytes


def write_iceberg_ndv(table: Any, sketches: ArrowStream, snapshot_id: int | None = None) -> dict[str, int]:
    """Store the `distinct_set` sketches of an Iceberg table's columns as its statistics.

    `table` is PyIceberg's, as ``catalog.load_table`` returns it; `sketches` is a table of sketches over the
    rows of one of its snapshots: all of its rows are united. `snapshot_id` is that snapshot, by default the
    current one. Statistics of the same snapshot for other columns remain. Returns the number of distinct
    values of each column, as engines read it.

    Columns must be of the types long, double, string, binary, timestamp or timestamptz: Iceberg and
    DataSketches hash values of other types differently. Raises `SketchError` for other types, for columns
    that the table doesn't have, and if there are no such sketches; `ValueError` for a table without that
    snapshot; `MissingExtraError` without PyIceberg, and what that raises if the table has changed
    meanwhile.

    >>> import polars as pl
    >>> import streamgauge as sg
    >>> visits = sg.Stream.from_frame(pl.DataFrame({"user": [f"u{n}" for n in range(3_000)]}))
    >>> sketches = visits.agg(users=sg.distinct_set("user")).run(progress=False).table
    >>> sg.write_iceberg_ndv(catalog.load_table("web.visits"), sketches)  # doctest: +SKIP
    {'user': 3000}
    """
    with naming_extras():
        from pyiceberg.table.statistics import StatisticsFile

    snapshot = table.current_snapshot() if snapshot_id is None else table.snapshot_by_id(snapshot_id)
    if snapshot is None:
        raise ValueError(f"the table {table.name()} has no snapshot {snapshot_id or 'yet'}")
    of_snapshot = {"snapshot-id": snapshot.snapshot_id, "sequence-number": snapshot.sequence_number or 0}
    blobs = list(_blobs(table, arrow_table(sketches)))
    written = {blob.field for blob in blobs}
    kept = [one for one in _known(table, snapshot.snapshot_id) if one.field not in written]
    file, footer, described = _puffin([*blobs, *kept], of_snapshot)
    path = f"{table.location()}/metadata/{uuid.uuid4()}.stats"
    with table.io.new_output(path).create() as stream:
        stream.write(file)
    statistics = StatisticsFile.model_validate(
        {
            "snapshot-id": snapshot.snapshot_id,
            "statistics-path": path,
            "file-size-in-bytes": len(file),
            "file-footer-size-in-bytes": footer,
            "blob-metadata": described,
        }
    )
    with table.update_statistics() as update:
        update.set_statistics(statistics)
    return {table.schema().find_column_name(blob.field): blob.ndv for blob in blobs}


def _blobs(table: Any, sketches: pa.Table) -> Iterable[_Blob]:
    """A blob for each column with a theta sketch. Raises `SketchError` if none has one, or for its type."""
    aggregates = {
        name: one for name, one in aggregates_of(sketches.schema).items() if one.name == "distinct_set"
    }
    if not aggregates:
        raise SketchError(
            "write_iceberg_ndv: the table has no distinct_set sketches; add distinct_set(column)"
        )
    schema = table.schema()
    for name, aggregate in aggregates.items():
        try:
            field = schema.find_field(aggregate.column)
        except ValueError:
            raise SketchError(
                f"write_iceberg_ndv: {name!r} is of {aggregate.column!r}, which is not a column of "
                f"{table.name()}; it has {', '.join(schema.column_names)}"
            ) from None
        kind = str(field.field_type)
        if _HASHED_ALIKE.get(kind) != aggregate.item_kind:
            raise SketchError(
                f"write_iceberg_ndv: Iceberg hashes values of {aggregate.column!r} ({kind}) differently from "
                f"this sketch of {aggregate.item_kind}; columns of {', '.join(_HASHED_ALIKE)} have one hash"
            )
        whole = Theta(aggregate.params["lg_k"])
        for image in sketches[name].drop_null():
            whole.merge(Theta.from_bytes(image.as_py(), lg_k=aggregate.params["lg_k"]))
        yield _Blob(field.field_id, round(whole.estimate()), whole.to_bytes())


def _known(table: Any, snapshot_id: int) -> Iterable[_Blob]:
    """The blobs that the table's statistics of a snapshot already contain."""
    from pyiceberg.table.puffin import PuffinFile

    for known in table.metadata.statistics:
        if known.snapshot_id != snapshot_id:
            continue
        with table.io.new_input(known.statistics_path).open() as stream:
            file = PuffinFile(stream.read())
        for blob in file.footer.blobs:
            if blob.type == _THETA and len(blob.fields) == 1:
                yield _Blob(blob.fields[0], int(blob.properties.get("ndv", 0)), file.get_blob_payload(blob))


def _puffin(blobs: Iterable[_Blob], of_snapshot: dict[str, int]) -> tuple[bytes, int, list[dict[str, Any]]]:
    """A Puffin file, the length of its footer, and the metadata of its blobs for the table.

    >>> file, footer, (blob,) = _puffin([_Blob(7, 3, b"image")], {"snapshot-id": 1, "sequence-number": 2})
    >>> file[:9], file[-4:], file[-footer:][:4], blob["properties"]
    (b'PFA1image', b'PFA1', b'PFA1', {'ndv': '3'})
    """
    file, described, placed = _MAGIC, [], []
    for blob in blobs:
        about = {"type": _THETA, "fields": [blob.field], **of_snapshot, "properties": {"ndv": str(blob.ndv)}}
        described.append(about)
        placed.append({**about, "offset": len(file), "length": len(blob.image)})
        file += blob.image
    payload = json.dumps({"blobs": placed, "properties": {"created-by": "streamgauge"}}).encode()
    footer = _MAGIC + payload + len(payload).to_bytes(4, "little") + bytes(4) + _MAGIC
    return file + footer, len(footer), described
