"""Expressions that look at one row at a time give the same however rows are batched; others are refused."""

from __future__ import annotations

import itertools
import random
from datetime import date, datetime, timedelta
from typing import Any

import polars as pl
import polars.selectors as cs
import pytest

from streamgauge.operators.definition.row_wise import check_row_wise
from streamgauge.operators.definition.steps import Step
from streamgauge.operators.definition.stream import Stream

from ...cases import each

pytestmark = pytest.mark.filterwarnings("ignore")  # Polars would write these otherwise

ROWS = 40
SCHEMA: dict[str, Any] = {
    "n": pl.Int64,
    "p": pl.Float64,
    "b": pl.Boolean,
    "s": pl.String,
    "t": pl.String,
    "raw": pl.Binary,
    "at": pl.Datetime("us"),
    "day": pl.Date,
    "tags": pl.List(pl.String),
    "ns": pl.List(pl.Int64),
    "pair": pl.Array(pl.Int64, 2),
    "place": pl.Struct({"x": pl.Float64, "y": pl.Int64}),
    "size": pl.Enum(["small", "large"]),
}
STREAM = Stream.from_schema(SCHEMA, time="at")


def col(name: str) -> Any:
    """`Any`, for the namespaces differ by version."""
    return pl.col(name)


def frame() -> pl.DataFrame:
    rng = random.Random(7)

    def some(value: Any) -> Any:
        return None if rng.random() < 0.15 else value

    start = datetime(2026, 1, 31, 23, 50)
    rows = [
        {
            "n": some(rng.randrange(-5, 9)),
            "p": some(rng.choice([rng.gauss(0, 9), float("nan"), float("inf"), 0.0])),
            "b": some(rng.random() < 0.5),
            "s": some(rng.choice(["12", "a-b-c", "Ärger", "", "x1y2", '{"k": 3}', "2026-01-02"])),
            "t": some(rng.choice(["a", "b-c", "x1y2"])),
            "raw": some(rng.choice([b"abcd", b"\xff\x00ab", b""])),
            "at": start + timedelta(seconds=rng.randrange(9000)),
            "day": some(date(2024, 2, 27) + timedelta(days=rng.randrange(4))),
            "tags": some([rng.choice("abc") for _ in range(rng.randrange(4))]),
            "ns": some([rng.randrange(9) for _ in range(rng.randrange(1, 5))]),
            "pair": [rng.randrange(9), rng.randrange(9)],
            "place": some({"x": rng.random(), "y": rng.randrange(3)}),
            "size": some(rng.choice(["small", "large"])),
        }
        for _ in range(ROWS)
    ]
    return pl.DataFrame(rows, schema=SCHEMA)


FRAME = frame()

ALLOWED: dict[str, pl.Expr] = {
    "arithmetic": (col("n") * 2 + col("p")) / 4 - 1,
    "whole division": col("n") // 3 + col("n") % 3,
    "comparisons": (col("n") > 1) & (col("p") <= 2) | ~col("b") ^ (col("s") != "12"),
    "missing": col("s").eq_missing(None) | col("t").ne_missing("a"),
    "power": col("n") ** 2 + col("p").sqrt() - col("p").exp().log1p(),
    "logarithm": col("p").abs().log(10),
    "rounding": col("p").round(1) + col("p").floor() - col("p").ceil() + col("p").sign(),
    "trigonometry": col("p").sin() + col("p").arctan() + col("p").degrees(),
    "clip": col("p").clip(-1, 5),
    "negative": -col("p"),
    "between": col("n").is_between(0, 5, closed="left"),
    "nulls": col("n").is_null() | col("p").is_nan() | col("p").is_finite(),
    "fill null": col("n").fill_null(0) + col("n").fill_null(strategy="zero"),
    "fill nan": col("p").fill_nan(0.0),
    "is in": col("s").is_in(["12", "a-b-c"]),
    "is in a series": col("s").is_in(pl.Series(["12", ""])),
    "is in a column of lists": col("t").is_in(col("tags")),
    "replace": col("s").replace({"12": "twelve"}),
    "replace strictly": col("t").replace_strict({"a": 1, "b-c": 2}, default=0),
    "cut": col("n").cut([0, 3]).cast(pl.String),
    "when": pl.when(col("n") > 2).then(col("s")).when(col("b")).then(pl.lit("b")).otherwise(None),
    "cast": col("s").cast(pl.Int64, strict=False),
    "enumeration": col("t").cast(pl.Enum(["a", "b-c", "x1y2"])).cast(pl.String),
    "coalesce": pl.coalesce(col("s"), col("t"), pl.lit("?")),
    "horizontal sum": pl.sum_horizontal("n", "p"),
    "horizontal maximum": pl.max_horizontal(col("n"), 3),
    "horizontal mean": pl.mean_horizontal("n", "p"),
    "horizontal all": pl.all_horizontal(col("b"), col("n") > 0),
    "struct": pl.struct("n", p=col("p").round(0)),
    "list of columns": pl.concat_list("n", col("n") + 1),
    "text of columns": pl.concat_str("s", pl.lit("/"), "t", ignore_nulls=True),
    "format": pl.format("{}:{}", "s", "n"),
    "hash": col("s").hash(seed=3) % 16,
    "literal": pl.lit(5),
    "literal list": pl.lit([1, 2]),
    "literal time": col("at") > datetime(2026, 2, 1),
    "wildcard": pl.struct(pl.all()),
    "selector": pl.concat_str((cs.string() - cs.by_name("t")).str.len_chars()),
    "pattern": pl.max_horizontal(pl.col("^[np]$")),
    "named": col("n").alias("m"),
    "function of each value": col("n").map_elements(lambda n: n * 2, return_dtype=pl.Int64),
    "function of values": col("n").map_batches(lambda n: n + 1, is_elementwise=True),
    "lower": col("s").str.to_lowercase() + col("s").str.to_uppercase(),
    "contains": col("s").str.contains("[0-9]") | col("s").str.starts_with(col("t")),
    "contains any": col("s").str.contains_any(["a", "1"]),
    "split": col("s").str.split("-"),
    "split exactly": col("s").str.split_exact("-", 1).struct.field("field_1"),
    "extract": col("s").str.extract(r"(\d+)", 1),
    "extract all": col("s").str.extract_all(r"\d"),
    "replace text": col("s").str.replace_all("-", "+", literal=True),
    "strip": col("s").str.strip_chars("a").str.pad_start(6, "_").str.zfill(8),
    "slice text": col("s").str.slice(1, 3) + col("s").str.head(1),
    "parse a number": col("s").str.to_integer(strict=False),
    "parse a date": col("s").str.to_date("%Y-%m-%d", strict=False),
    "parse a time": col("s").str.to_datetime("%Y-%m-%d", strict=False, time_unit="us"),
    "JSON path": col("s").str.json_path_match("$.k"),
    "encode": col("s").str.encode("hex").str.decode("hex"),
    "binary": col("raw").bin.size() + col("raw").bin.contains(b"ab").cast(pl.UInt32),
    "list sum": col("ns").list.sum() + col("ns").list.max() - col("ns").list.len(),
    "list mean": col("ns").list.mean() + col("ns").list.std(),
    "list elements": col("ns").list.get(1, null_on_oob=True) + col("ns").list.first(),
    "list sorted": col("ns").list.sort(descending=True).list.head(2).list.reverse(),
    "list distinct": col("tags").list.unique(maintain_order=True).list.join("+"),
    "list contains": col("tags").list.contains("a") | col("tags").list.contains(col("t")),
    "list difference": col("ns").list.diff() + col("ns").list.shift(1),
    "list sets": col("tags").list.set_union(["z"]).list.sort(),
    "list gathered": col("ns").list.gather([0]),
    "list ranked": col("ns").list.eval(pl.element().rank() + pl.element().sum()),
    "list filtered": col("ns").list.eval(pl.element().filter(pl.element() > pl.element().mean())),
    "lists within flattened": col("tags").list.eval(pl.element().str.split("a").explode()),
    "list as struct": col("ns").list.to_struct(fields=["one", "two"]),
    "array": col("pair").arr.sum() + col("pair").arr.get(0),
    "array as list": col("pair").arr.to_list(),
    "struct field": col("place").struct.field("x") * col("place").struct.field("y"),
    "struct fields": col("place").struct.with_fields(pl.field("x") * 2),
    "struct as JSON": col("place").struct.json_encode(),
    "date parts": col("at").dt.year() + col("at").dt.hour() + col("day").dt.weekday(),
    "truncate": col("at").dt.truncate("1h"),
    "time zone": col("at").dt.replace_time_zone("UTC").dt.convert_time_zone("Europe/Oslo"),
    "epoch": col("at").dt.epoch("ms") + col("at").dt.timestamp("us"),
    "from an epoch": pl.from_epoch(col("n"), time_unit="s"),
    "offset": col("at").dt.offset_by("1mo"),
    "time as text": col("at").dt.strftime("%H:%M"),
    "duration": (col("at") - datetime(2026, 1, 1)).dt.total_seconds(),
    "dates of numbers": pl.date(2026, col("n").abs() + 1, 1),
    "lengths of numbers": pl.duration(seconds="n"),
    "category": col("size").cat.len_chars(),
    "ranges": pl.int_ranges(0, col("n").abs()),
    "repeated": col("s").repeat_by(col("n").abs()),
}


@pytest.mark.slow
@each("name", ALLOWED)
def test_what_is_allowed_gives_the_same_however_rows_are_batched(name: str) -> None:
    expression = ALLOWED[name].alias("answer")
    stream = STREAM.with_columns(expression)

    def answers(rows: pl.DataFrame) -> pl.Series:
        return stream.reading.transform(rows.lazy()).collect()[stream.columns.names()[-1]]

    whole = answers(FRAME)
    rng = random.Random(name)
    for most in (1, 3, 17):
        cuts = [0]
        while cuts[-1] < ROWS:
            cuts.append(min(ROWS, cuts[-1] + rng.randint(1, most)))
        parts = [answers(FRAME[a:b]) for a, b in itertools.pairwise(cuts)]
        assert pl.concat(parts).equals(whole, null_equal=True)


OTHER_ROWS = "depends on other rows, so the result would depend on how messages happen to be batched; "
WINDOW = OTHER_ROWS + "aggregate it per window, as in .agg("
NEIGHBOURS = OTHER_ROWS + "compute it from the windows' answers, or within a column of lists, as in pl.col("

REFUSED: list[tuple[pl.Expr, str]] = [
    (col("p").sum(), f'col("p").sum() {WINDOW}p=sum("p"))'),
    (col("p") - col("p").mean(), f'col("p").mean() {WINDOW}p=mean("p"))'),
    (col("p").min(), f'{WINDOW}p=min("p"))'),
    ((col("p") * 2).max(), f'{WINDOW}p=max("p"))'),
    (col("p").median(), f'{WINDOW}p=quantiles("p"))'),
    (col("p").quantile(0.9), f'{WINDOW}p=quantiles("p"))'),
    (col("p").std(), f'{WINDOW}p=variance("p"))'),
    (col("p").first(), f'{WINDOW}p=first("p"))'),
    (col("p").last(), f'{WINDOW}p=last("p"))'),
    (pl.len(), f"len() {OTHER_ROWS}count rows per window, as in .agg(rows=count())"),
    (col("p").count(), f'{WINDOW}p=count("p"))'),
    (col("s").n_unique(), f'{WINDOW}s=distinct("s"))'),
    (col("s").unique(), f'{WINDOW}s=distinct("s"))'),
    (col("s").is_first_distinct(), f'{WINDOW}s=distinct("s"))'),
    (col("s").is_duplicated(), f'{WINDOW}s=distinct("s"))'),
    (col("s").mode(), f'{WINDOW}s=top_k("s"))'),
    (col("s").value_counts(), f'{WINDOW}s=top_k("s"))'),
    (col("p").top_k(3), f'{WINDOW}p=top_k("p"))'),
    (col("p").qcut(4), f'{WINDOW}p=quantiles("p"))'),
    (col("p").sample(2), f'{WINDOW}p=sample("p"))'),
    (col("p").shuffle(), f'{WINDOW}p=sample("p"))'),
    (col("p").sum().over("s"), 'group the stream, as in .group_by("country").tumbling("1m").agg(...)'),
    (col("p").shift(), f'col("p").shift(1) {NEIGHBOURS}"p").list.eval(pl.element().shift(...))'),
    (col("p").diff(), f'{NEIGHBOURS}"p").list.eval(pl.element().diff(...))'),
    (col("p").pct_change(), f'{NEIGHBOURS}"p").list.eval(pl.element().pct_change(...))'),
    (col("p").cum_sum(), f'{NEIGHBOURS}"p").list.eval(pl.element().cum_sum(...))'),
    (col("p").rolling_mean(3), NEIGHBOURS),
    (col("p").rolling_mean_by("at", window_size="1h"), NEIGHBOURS),
    (col("p").ewm_mean(com=1), NEIGHBOURS),
    (col("p").rank(), f'{NEIGHBOURS}"p").list.eval(pl.element().rank(...))'),
    (col("p").sort(), NEIGHBOURS),
    (col("p").sort_by("n"), NEIGHBOURS),
    (col("p").reverse(), NEIGHBOURS),
    (col("p").interpolate(), NEIGHBOURS),
    (col("s").rle(), NEIGHBOURS),
    (col("s").str.join(","), NEIGHBOURS),
    (col("p").fill_null(strategy="forward"), "fills from other rows; fill with a value, as in .fill_null(0)"),
    (col("p").head(2), f'{OTHER_ROWS}take a sample of rows per window, as in .agg(p=sample("p", k=10))'),
    (col("p").slice(1, 2), 'or take elements of a list, as in pl.col("p").list.get(0)'),
    (col("p").gather([0]), "take a sample of rows per window"),
    (col("p").filter(col("n") > 1), "filter the rows themselves, by a step .filter(...)"),
    (col("p").drop_nulls(), 'by .filter(pl.col("p").is_not_null())'),
    (col("tags").explode(), 'make rows of the elements by a step .explode("tags")'),
    (col("s").is_in(col("t")), 'takes all rows of col("t") at once; write constants, as in [1, 2]'),
    (col("s").is_in(col("t").implode()), "write constants as a list, as in .is_in([1, 2])"),
    (pl.int_range(pl.len()), 'number messages by message=["partition", "offset"] of Stream.from_kafka'),
    (
        col("n").map_batches(lambda n: n),
        "receives whole batches, which may be cut anywhere; write .map_elements(",
    ),
    (
        pl.fold(pl.lit(0), lambda a, b: a + b, [col("n")]),
        "write the operation itself, as in pl.sum_horizontal",
    ),
    (col("n") + pl.lit(pl.Series([1, 2])), "[1, 2] is a column of its own length; write a constant"),
    (pl.lit(pl.Series([7])), "[7] is a column of its own length; write a constant, as in pl.lit(5)"),
    (
        col("s").str.to_datetime(),
        "guesses the format from the first value of a batch; name it, as in .str.to_da",
    ),
    (col("s").str.to_date(strict=False), "guesses the format from the first value of a batch"),
    (
        col("s").cast(pl.Categorical) < "b",
        "depends on the order in which a Categorical's values came; cast it",
    ),
    (col("size").to_physical(), "cast it to the type that is meant, as in .cast(pl.Int64)"),
    (col("tags").list.sample(1), f'{WINDOW}tags=sample("tags"))'),
    (col("ns").list.eval(pl.element().shuffle()), "happen to be batched"),
    (
        col("p").extend_constant(0, 1),
        'streamgauge does not know that col("p").extend_constant(0, 1) is row-wise',
    ),
    (pl.corr("n", "p"), "is row-wise; put it in map_elements or in a decoder"),
    (pl.struct(col("n"), total=col("p").sum()), f'{WINDOW}p=sum("p"))'),
    (pl.when(col("b")).then(col("p").sum()).otherwise(0), f'{WINDOW}p=sum("p"))'),
    (pl.all().sum(), "all().sum() " + WINDOW + 'value=sum("value"))'),
]


@each(("expression", "reported"), REFUSED, ids=[str(at) for at in range(len(REFUSED))])
def test_what_looks_at_other_rows_is_refused_with_the_line_to_write(
    expression: pl.Expr, reported: str
) -> None:
    with pytest.raises(ValueError) as refused:
        STREAM.with_columns(answer=expression)
    assert reported in str(refused.value) and str(refused.value).startswith("with_columns: ")
    with pytest.raises(ValueError, match=r"^filter: "):
        STREAM.filter(expression)


def test_wherever_an_expression_is_taken_it_is_looked_at() -> None:
    with pytest.raises(ValueError, match=r"^select: .*as in \.agg\(p=mean"):
        STREAM.select("n", p=col("p").mean())
    with pytest.raises(ValueError, match=r"^time: .*as in \.agg\(at=max"):
        Stream.from_schema(SCHEMA, time=col("at").max())
    with pytest.raises(ValueError, match=r"^time: .*reads no column"):
        Stream.from_schema(SCHEMA, time=pl.lit(datetime(2026, 1, 1)))
    with pytest.raises(ValueError, match=r"^select: none of its expressions reads a column"):
        STREAM.select(five=pl.lit(5))
    with pytest.raises(TypeError, match=r"^explode: .*is not a column's name; write \.explode"):
        STREAM.explode(col("tags").list.head(1))  # type: ignore[arg-type]
    assert STREAM.select("n", five=pl.lit(5)).columns.names() == ["n", "five"]


def test_what_polars_keeps_to_itself_is_refused(monkeypatch) -> None:
    def opaque(*_: Any, **__: Any) -> str:
        raise pl.exceptions.ComputeError("serialization not supported for this 'opaque' function")

    monkeypatch.setattr("polars.expr.meta.ExprMetaNameSpace.serialize", opaque)
    with pytest.raises(ValueError, match=r"can't describe the expression .*'opaque' function.*decoder"):
        check_row_wise("filter", col("n") > 1, SCHEMA)


def test_steps_made_by_hand_are_looked_at_as_well() -> None:
    with pytest.raises(ValueError, match="depends on other rows"):
        Step("filter", (col("p").sum() > 1,)).check(SCHEMA)
