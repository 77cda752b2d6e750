"""Compare a checkpoint's definition with the query's own before the first micro-batch.

Spark merges new rows into existing state, whatever definition created that state. So the definition is part
of the offsets that Spark logs before each batch. Our own source writes it into its offsets; any other
streaming DataFrame is joined by a second source that has no rows and only carries the definition.
"""

from __future__ import annotations

import base64
import json
import logging
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from ..operators.definition.definition_diff import DefinitionChanged, differences, rewritten
from ..operators.table.spark_footer import DEFINED
from ..operators.table.windows import START
from .read_limits import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow
from .slow_starts import patiently

log = logging.getLogger("streamgauge.spark")

NAME = "streamgauge-definition"
_KEY = "definition"
_WATERMARK = "batchWatermarkMs"
_LABEL = "streamgauge.definition"

EXPRESSIONS = "expressions"
"""The key of a definition's expression trees, by their names in the table."""


def pack(definition: Mapping[str, Any]) -> str:
    """Encode a definition as short text, because Spark logs and shows it with every micro-batch."""
    text = json.dumps(definition, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode("ascii")


def unpack(text: str) -> dict[str, Any]:
    """Decode the text of `pack`. Raises `ValueError` for anything else.

    >>> unpack(pack({"keys": ["lang"]}))
    {'keys': ['lang']}
    """
    try:
        unpacked = json.loads(zlib.decompress(base64.b64decode(text, validate=True)))
    except zlib.error as error:
        raise ValueError(f"not a packed definition: {error}") from None
    if not isinstance(unpacked, dict):
        raise ValueError(f"not a packed definition: {unpacked!r}")
    return unpacked


def check_same(before: str | None, after: str | None) -> None:
    """Raise `DefinitionChanged` if two packed definitions differ; None is an unknown one."""
    if before is None or after is None or before == after:
        return
    old, new = unpack(before), unpack(after)
    trees = [definition.pop(EXPRESSIONS, {}) for definition in (old, new)]
    if changes := differences(old, new) or _order(old, new) or _expressions(*trees):
        raise changed(changes)
    for sentence in rewritten(old, new):
        log.warning("resuming from a checkpoint that was written with another Polars or Python: %s", sentence)


def _order(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Describe a changed order of aggregates, since state stores their columns by position, not by name."""
    names = [", ".join(definition.get("aggregates", {})) for definition in (before, after)]
    return [] if names[0] == names[1] else [f"the aggregates' order changed from {names[0]} to {names[1]}"]


def _expressions(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Describe expressions that have changed under the same name."""
    names = dict.fromkeys((*before, *after))
    changed = [name for name in names if before.get(name) != after.get(name)]
    return [f"{name!r} is made of another expression, or of constants of another type" for name in changed]


def changed(changes: Sequence[str]) -> DefinitionChanged:
    """Return the error that lists the differences."""
    return DefinitionChanged(
        f"the checkpoint was made by another definition: {'; '.join(changes)}. Give the changed one "
        "another checkpoint folder, or undo the change"
    )


def remembering(rows: DataFrame, definition: Mapping[str, Any], schema: StructType) -> DataFrame:
    """Add the definition to rows of this schema, so that a query refuses another definition's checkpoint."""
    spark = rows.sparkSession
    spark.dataSource.register(DefinitionSource)
    reader = spark.readStream.format(NAME).schema(schema).option(_KEY, pack(definition))
    remembered = patiently("the definition of a query", reader.load)
    return rows.unionAll(remembered)


def labelled(table: DataFrame, definition: Mapping[str, Any]) -> DataFrame:
    """Add the definition to a table of sketches, so that `check_logged` sees it in each micro-batch."""
    name = START if START in table.columns else DEFINED
    (metadata,) = (field.metadata for field in table.schema if field.name == name)
    return table.withMetadata(name, {**metadata, _LABEL: pack(definition)})


def label_of(table: DataFrame) -> str | None:
    """Return the packed definition that `labelled` added to a table, if the table still has it."""
    labels = (field.metadata.get(_LABEL) for field in table.schema if field.name in (START, DEFINED))
    return next((label for label in labels if label is not None), None)


def check_logged(batch: DataFrame, checkpoint: str, number: int) -> None:
    """Compare a micro-batch's definition with the one that Spark logged when it planned the batch.

    Spark reruns a batch that an earlier query planned and didn't finish before it asks any source. Raises
    `DefinitionChanged`. A batch without the column for the definition is not checked.
    """
    label = label_of(batch)
    known = [entry[_KEY] for entry in logged(batch.sparkSession, checkpoint, number) if entry.get(_KEY)]
    # If a query merges the tables of sketches that it makes, both definitions are logged. Each source
    # compares its own; the table's is the last.
    if known and label not in known:
        check_same(known[-1], label)


def closed_by(spark: SparkSession, checkpoint: str, number: int) -> int:
    """Return a micro-batch's watermark in microseconds; the batch closes the windows that end by then.

    Spark logs it when it plans a micro-batch, so a repeated batch has the same.
    """
    entries = logged(spark, checkpoint, number)
    return next(int(entry[_WATERMARK]) for entry in entries if _WATERMARK in entry) * 1_000


def logged(spark: SparkSession, checkpoint: str, number: int) -> list[dict[str, Any]]:
    """Return what Spark logged when it planned a micro-batch: its own entry, and one for each source."""
    file = f"{checkpoint.rstrip('/')}/offsets/{number}"
    try:
        lines = Path(file.removeprefix("file:")).read_text(encoding="utf-8").splitlines()
    except OSError:  # on another file system
        lines = [line for (line,) in spark.read.text(file).collect()]
    logged = []
    for line in lines:
        # One line per source: JSON, or a dash.
        with suppress(json.JSONDecodeError):
            if isinstance(entry := json.loads(line), dict):
                logged.append(entry)
    return logged


class DefinitionSource(DataSource):
    """A stream without rows; its only offset is a definition."""

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return NAME

    # Spark passes the argument by name.
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """For ``spark.readStream``."""
        return DefinitionReader(self.options[_KEY])


class DefinitionReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads no rows, and refuses to resume from another definition's offset."""

    def __init__(self, definition: str) -> None:
        self._definition = definition

    def initialOffset(self) -> dict[str, Any]:
        """Return the definition, for a new checkpoint."""
        return {_KEY: self._definition}

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return no limit: there is nothing to read."""
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Nothing to do: there is never anything new."""

    def latestOffset(
        self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None
    ) -> dict[str, Any]:
        """Return `start`, which Spark 4.1 passes only to `partitions`. Raises `DefinitionChanged`."""
        start = self.initialOffset() if start is None else start
        check_same(start.get(_KEY), self._definition)
        return start

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Nothing to report."""
        return None

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return no tasks. Raises `DefinitionChanged`."""
        for offset in (start, end):
            check_same(offset.get(_KEY), self._definition)
        return [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return no rows."""
        return iter(())
