"""Tables of sketches read back by the definition in each row, from files without metadata."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from streamgauge.operators.definition import aggregates as ask
from streamgauge.operators.families import FAMILIES
from streamgauge.operators.table.schema import definition_text, table_schema
from streamgauge.operators.windows.cumulate import Cumulate
from streamgauge.operators.windows.hopping import regular_windows
from streamgauge.operators.windows.session import SessionTable
from streamgauge.operators.windows.sliding import SlidingTable
from streamgauge.operators.windows.table import AllTime
from streamgauge.sketches.core.protocol import SketchError
from streamgauge.spark_udafs.frames.frames import sketch
from streamgauge.spark_udafs.frames.rollup import rollup
from streamgauge.spark_udafs.frames.row_definitions import schema_of_text, windows_of_text
from streamgauge.spark_udafs.frames.tables import as_table

MINUTE = 60_000_000


@pytest.mark.parametrize(
    "windows",
    [
        None,
        AllTime(),
        regular_windows(MINUTE),
        regular_windows(MINUTE, None, 5),
        regular_windows(15 * MINUTE, MINUTE),
        regular_windows(15 * MINUTE, MINUTE, 5_000_000),
        Cumulate.of("1d", every="6h").of_table(),
        SlidingTable(MINUTE),
        SessionTable(MINUTE),
    ],
    ids=str,
)
def test_the_text_of_a_definition_gives_the_schema_again(windows: Any) -> None:
    given = {"weight": "n", "key": "n", "value": "n"}
    aggregates = {}
    for name, line in FAMILIES.items():
        inputs = {one: given[one] for one in line.inputs if one in given}
        aggregates[f"the {name}"] = ask.aggregate(name, "a; (b", **inputs).typed(pa.int64())
    keys = {"lang": pa.string(), "lang2": pa.int32(), "day": pa.date32(), "at": pa.timestamp("us", "UTC")}
    keys |= {"paid": pa.decimal128(38, 2), "clock": pa.time64("us"), "seen": pa.timestamp("us")}
    schema = table_schema(keys, {**aggregates, "rows": ask.count()}, windows)
    again = schema_of_text(definition_text(schema), schema.names[2:])
    assert again.equals(schema, check_metadata=True)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "windows of 1m",
        "lang string",
        "lang string; users distinct(",
        "lang string; users os.exit(1)",
    ],
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(SketchError, match="isn't the definition of this table"):
        schema_of_text(text, ["lang", "users"])


def test_windows_of_every_kind_are_read_back_from_their_words() -> None:
    texts = [
        "windows of 1h",
        "windows of 1h every 15m from 5m on",
        "windows of 1d from 2h on",
        "windows of 1mo",
        "windows of 1d in Europe/Helsinki",
        "windows of 1q from 1mo on in Asia/Kolkata",
        "windows of 1w every 1d in Europe/Paris",
        "windows of up to 1d that grow by 1h in America/St_Johns",
        "windows of up to 1d that grow by 1h",
        "windows of 5 rows",
        "sessions with a gap of 5m",
    ]
    assert [str(windows_of_text(text)) for text in texts] == texts


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("form", ["orc", "json", "csv"])
def test_tables_come_back_from_files_without_metadata(
    spark: Any, tmp_path: Path, form: str, request: pytest.FixtureRequest
) -> None:
    rows = spark.range(5_000).selectExpr(
        "id % 700 AS user",
        "date_add(date'2026-01-01', cast(id % 2 AS int)) AS day",
        "timestamp_seconds(id) AS at",
    )
    aggregates: dict[str, Any] = {"n": F.count("*"), "users": ask.distinct("user"), "all": F.sum("user")}
    if form != "csv":  # which holds no structs
        aggregates |= {"mean": F.avg("user"), "deviation": F.stddev("user"), "last": ask.last("user")}
        aggregates |= {"spread": ask.quantiles("user"), "top": ask.top_k("user")}
    table = sketch(rows).groupBy("day", F.window("at", "5 minutes")).agg(**aggregates)
    file, lost = str(tmp_path / "table"), str(tmp_path / "lost")
    if form == "csv":
        table.write.format(form).option("header", True).save(lost)
        with pytest.raises(Exception, match="binaryOutputStyle set to BASE64"):
            as_table(spark.read.format(form).option("header", True).load(lost))
        request.addfinalizer(lambda: spark.conf.unset("spark.sql.binaryOutputStyle"))
        spark.conf.set("spark.sql.binaryOutputStyle", "BASE64")
    table.write.format(form).option("header", True).save(file)
    stored = spark.read.format(form).option("header", True).load(file)
    order = ["window_start", "day"]
    wanted, rows_read = as_table(table).answers().sort(order), as_table(stored).answers().sort(order)
    assert rows_read.select(wanted.columns).equals(wanted)
    whole = as_table(rollup(stored, every="2 hours", by=[])).answers()
    assert whole["n"].to_list() == [5_000]
    other = stored.withColumn("streamgauge_definition", F.lit("windows of 1m; x"))
    with pytest.raises(SketchError, match="isn't the definition of this table"):
        as_table(other)
    with pytest.raises(SketchError, match="the rows have different definitions"):
        as_table(stored.unionByName(other))
