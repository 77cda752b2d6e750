"""The calls that depend only on their own row, and replacements for others.

Names are those of `expression_tree`. This is an allow-list: calls that Polars adds are refused until they are
listed here.
"""

from __future__ import annotations

_OPERATORS = "== != < <= > >= + - * / // % & | ^ eq_missing ne_missing truncdiv"

_PLAIN = """
    col columns literal alias cast when field element name.keep name.change
    abs sign neg ceil floor round round_sig_figs truncate clip pow sqrt cbrt exp log log1p erf erfc
    sin cos tan cot sinh cosh tanh arcsin arccos arctan arcsinh arccosh arctanh arctan2 degrees radians
    bitwise_count_ones bitwise_count_zeros bitwise_leading_ones bitwise_leading_zeros
    bitwise_trailing_ones bitwise_trailing_zeros reinterpret hash
    not_ is_null is_not_null is_nan is_not_nan is_finite is_infinite is_between is_close is_in
    fill_null fill_null_with_strategy coalesce replace replace_strict cut repeat_by map_batches
    struct concat_list concat_arr concat_str format
    all_horizontal any_horizontal sum_horizontal mean_horizontal min_horizontal max_horizontal
    datetime duration business_day_count
    int_ranges date_ranges datetime_ranges time_ranges linear_spaces ext.storage
"""

_STR = """
    base64_decode base64_encode contains contains_any count_matches ends_with escape_regex extract
    extract_all extract_groups extract_many find find_many head hex_decode hex_encode json_decode
    json_path_match len_bytes len_chars normalize pad_end pad_start replace replace_many reverse slice split
    split_exact splitn starts_with strip_chars strip_chars_end strip_chars_start strip_prefix strip_suffix
    strptime tail to_decimal to_integer to_lowercase to_titlecase to_uppercase zfill
"""

_LIST = """
    all any arg_max arg_min contains count_matches diff drop_nulls eval gather gather_every get join len max
    mean median min n_unique reverse set_operation shift slice sort std sum to_array to_map to_struct unique
    var
"""

_ARR = """
    all any arg_max arg_min contains count_matches eval get join len max mean median min n_unique reverse
    shift slice sort std sum to_list to_struct unique var
"""

_DT = """
    add_business_days base_utc_offset cast_time_unit century combine convert_time_zone date datetime day
    days_in_month dst_offset hour is_business_day is_leap_year iso_year microsecond millennium millisecond
    minute month month_end month_start nanosecond offset_by ordinal_day quarter replace replace_time_zone
    round second time timestamp to_string total_days total_hours total_microseconds total_milliseconds
    total_minutes total_nanoseconds total_seconds truncate week weekday with_time_unit year
"""

_BIN = """
    base64_decode base64_encode contains ends_with from_buffer get head hex_decode hex_encode reinterpret size
    slice starts_with tail
"""

_CAT = "ends_with len_bytes len_chars slice starts_with"

_STRUCT = "field json_encode map_field_names prefix_fields rename_fields suffix_fields with_fields"


_OF_A_LIST = """
    sum mean min max median std var first last item n_unique count len null_count product mode skew kurtosis
    quantile entropy any all has_nulls is_unique is_duplicated is_first_distinct is_last_distinct unique
    unique_counts value_counts top_k bottom_k top_k_by bottom_k_by rank sort sort_by reverse shift diff
    pct_change cum_sum cum_count cum_min cum_max cum_prod interpolate rle rle_id arg_sort arg_min arg_max
    arg_unique arg_where peak_min peak_max slice gather gather_every filter drop_nulls drop_nans index_of
    search_sorted nan_min nan_max min_by max_by implode explode str.join bitwise_and bitwise_or bitwise_xor
"""


def _names(text: str, room: str = "") -> frozenset[str]:
    return frozenset(room + name for name in text.split())


ROW_WISE = frozenset().union(
    _names(_OPERATORS),
    _names(_PLAIN),
    _names(_STR, "str."),
    _names(_LIST, "list."),
    _names(_ARR, "arr."),
    _names(_DT, "dt."),
    _names(_BIN, "bin."),
    _names(_CAT, "cat."),
    _names(_STRUCT, "struct."),
)
"""Calls that are allowed on a row's values."""

OF_A_LIST = _names(_OF_A_LIST)
"""Further calls allowed on the elements within a `list.eval`, `list.agg` or `arr.eval`."""

COLLECTIONS: dict[str, tuple[int, ...]] = {
    "is_in": (1,),
    "replace": (1, 2),
    "replace_strict": (1, 2),
    "str.contains_any": (1,),
    "str.replace_many": (1, 2),
    "str.extract_many": (1,),
    "str.find_many": (1,),
    "list.gather": (1,),
    "business_day_count": (2,),
    "dt.add_business_days": (2,),
    "dt.is_business_day": (1,),
}
"""Calls that accept many values at once, and in which inputs: constants, or a list per row."""

_WINDOW = 'aggregate it per window, as in .agg({label}={call}("{column}"))'
_NEIGHBOURS = (
    "compute it from the windows' answers, or within a column of lists, as in "
    'pl.col("{column}").list.eval(pl.element().{name}(...))'
)
_SOME = (
    'take a sample of rows per window, as in .agg({label}=sample("{column}", k=10)), or take elements of a '
    'list, as in pl.col("{column}").list.get(0)'
)
_OPERATION = "write the operation itself, as in pl.sum_horizontal(...) or a + b"

_SPREAD = "median quantile approx_quantile qcut hist bin_quantiles skew kurtosis"
_DIFFERENT = """
    n_unique approx_n_unique unique is_unique is_duplicated is_first_distinct is_last_distinct arg_unique
"""

_AGGREGATES = {
    **{name: name for name in ("sum", "mean", "min", "max", "first", "last", "sample")},
    **dict.fromkeys(_names(_SPREAD), "quantiles"),
    **dict.fromkeys(_names(_DIFFERENT), "distinct"),
    **dict.fromkeys(_names("mode value_counts unique_counts top_k bottom_k"), "top_k"),
    **dict.fromkeys(_names("count len null_count"), "count"),
    "std": "variance",
    "var": "variance",
    "nan_min": "min",
    "nan_max": "max",
    "list.sample": "sample",
}
"""Calls that a window's aggregate replaces."""

_OF_NEIGHBOURS = """
    shift diff pct_change cum_sum cum_count cum_min cum_max cum_prod rank sort sort_by reverse rle rle_id
    interpolate peak_min peak_max arg_sort arg_min arg_max gather_every rolling rolling_expr rolling_expr_by
    rolling_map ewm_mean ewm_std ewm_var product entropy any all has_nulls arg_where index_of search_sorted
    min_by max_by top_k_by bottom_k_by bitwise_and bitwise_or bitwise_xor str.join
"""

_INSTEAD = {
    **dict.fromkeys(_names(_OF_NEIGHBOURS), _NEIGHBOURS),
    **dict.fromkeys(("slice", "gather", "item"), _SOME),
    "over": 'group the stream, as in .group_by("country").tumbling("1m").agg(...)',
    "filter": "filter the rows themselves, by a step .filter(...)",
    "drop_nulls": 'filter the rows themselves, by .filter(pl.col("{column}").is_not_null())',
    "drop_nans": 'filter the rows themselves, by .filter(pl.col("{column}").is_not_nan())',
    "explode": 'make rows of the elements by a step .explode("{column}")',
    "arr.explode": 'make rows of the elements by a step .explode("{column}")',
    "implode": "write constants as a list, as in .is_in([1, 2])",
    "int_range": 'number messages by message=["partition", "offset"] of Stream.from_kafka',
    "fold_horizontal": _OPERATION,
    "reduce_horizontal": _OPERATION,
    "to_physical": "cast it to the type that is meant, as in .cast(pl.Int64)",
    "cat.physical": "keep the text, by .cast(pl.String)",
}


def instead_of(name: str, column: str | None) -> str | None:
    """The replacement for a call on a column that is not row-wise; None if there is none.

    >>> instead_of("mean", "price")
    'aggregate it per window, as in .agg(price=mean("price"))'
    """
    if name == "len" and column is None:
        return "count rows per window, as in .agg(rows=count())"
    column = "value" if column is None else column
    template = _WINDOW if name in _AGGREGATES else _INSTEAD.get(name)
    label = column if column.isidentifier() else "answer"
    return template and template.format(label=label, call=_AGGREGATES.get(name), column=column, name=name)
