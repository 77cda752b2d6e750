"""The table of functions: every family has its own, and what they say is what they do."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.operators.families import FAMILIES
from streamgauge.spark_udafs.functions.catalogue import VERBS, catalogue
from streamgauge.spark_udafs.functions.describing import NOTE, description

from ...cases import each

N = 300
NAMES = [name for name, line in FAMILIES.items() if not line.exact]
COLUMNS = {
    "column": pa.array(np.arange(N) % 40),
    "time": pa.array([datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=n) for n in range(N)]),
    "weight": pa.array(np.arange(1.0, N + 1)),
    "value": pa.array(np.arange(1.0, N + 1)),
    "key": pa.array([f"key{n % 3}" for n in range(N)]),
}
CLOCKED = ("classic_quantiles", "var_opt")
"""Families whose package draws by the clock."""


def sketched(name: str, rows: slice = slice(None)) -> bytes:
    function = catalogue()[f"sketch_{name}"]
    return function.run()(*(COLUMNS[column][rows] for column in function.columns))


@pytest.mark.slow
@each("name", NAMES)
def test_every_family_is_sketched_merged_and_answered(name: str) -> None:
    kind = "_long" if FAMILIES[name].aggregate.kinds and name != "tuple" else ""
    functions = catalogue()
    parts = pa.array([sketched(name, slice(0, 100)), None, sketched(name, slice(100, N))])
    merged = functions[f"merge_{name}{kind}"].run()(parts)
    united = functions[f"union_{name}{kind}"].run()(parts[:1], parts[2:])[0].as_py()
    more = {"kind": "long"} if kind else {}
    sketches = [FAMILIES[name].sketch_class().from_bytes(image, **more) for image in (merged, united)]
    # Of equal rows, bytes may lie in another order.
    one, other = ([sketch.n] if name in CLOCKED else sketch.answer() for sketch in sketches)
    assert one == other
    given = pa.array([merged, None])
    assert functions[f"print_{name}{kind}"].run()(given).to_pylist() == [repr(sketches[0]), None]
    result = functions[f"answer_{name}{kind}"].run()(given)
    assert result.type == functions[f"answer_{name}{kind}"].returns and result[1].as_py() is None
    assert texts(result[0].as_py()) == texts(sketches[0].answer())


def texts(answer: Any) -> Any:
    """An answer with the items of samples as text, and without the error where there is none."""
    if isinstance(answer, dict):
        reported = {name: texts(value) for name, value in answer.items() if (name, value) != ("error", None)}
        if isinstance(reported.get("values"), list):
            reported["values"] = [
                v if isinstance(v, (str, dict)) else json.dumps(v) for v in reported["values"]
            ]
        return reported
    return [texts(one) for one in answer] if isinstance(answer, list) else answer


def test_what_a_function_says_of_itself() -> None:
    functions = catalogue()
    assert set(VERBS) == {function.verb for function in functions.values()}
    for name, function in functions.items():
        usage, about, examples, note, *_ = description(function)
        does = "is refused" if function.must_name_kind else VERBS[function.verb]
        assert usage.startswith(f"{name}(") and f" - {does}" in usage
        assert len(re.findall(r"^ +\* ", about, re.M)) == len(function.columns) + len(function.options)
        assert f"Returns: {function.result}" in about and f"> SELECT {name}" in examples
        assert (NOTE in note) == function.aggregates == (function.verb in ("sketch", "merge"))
    assert "sketch(df)" in NOTE and "FILTER" in NOTE


def test_names_say_the_kind_where_bytes_do_not() -> None:
    names = set(catalogue())
    for verb in ("merge", "answer", "union", "print"):
        assert {f"{verb}_kll_quantiles_{kind}" for kind in ("double", "long", "float")} <= names
        assert {f"{verb}_top_k_{kind}" for kind in ("string", "long")} <= names
    assert {"answer_sample", "answer_sample_long", "answer_sample_double"} <= names
    assert not {"merge_sample_long", "sketch_top_k_long", "answer_distinct_long"} & names


def test_every_option_is_described() -> None:
    described = [line for function in catalogue().values() for line in description(function)[1].splitlines()]
    options = [line for line in described if " - optional; " in line]
    assert len(options) > 50
    assert not [line for line in options if "optional; as of" in line]


def test_without_the_extra_for_stored_sketches_all_others_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    names = set(catalogue())
    monkeypatch.setattr("streamgauge.operators.families.find_spec", lambda name: None)
    absent = {name for name in names if re.search("cpc|classic_quantiles|var_opt", name)}
    assert absent and set(catalogue()) == names - absent
