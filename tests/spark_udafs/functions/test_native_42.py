"""What Spark 4.2.1 wrote of three ids, read by our functions; `test_native` does so with today's Spark."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from streamgauge.sketches.bloom import Bloom
from streamgauge.spark_udafs.functions.catalogue import catalogue

HLL = "0201070c03000308cbd7c2042bf2fb06862ff90d0000000000000000000000000000000000000000"
THETA = "0104033d011acc93032d0c35ee5befc8ae3efa70d1dfa7ab834e208fb6c9a844"
KLL_LONG = (
    "05010f00c80008000300000000000000c8000100c5000000000000000000000002000000000000000000000000000000"
    "01000000000000000200000000000000"
)
KLL_DOUBLE = (
    "05010f00c80008000300000000000000c8000100c50000000000000000000000000000000000f03f0000000000000000"
    "000000000000e03f000000000000f03f"
)
TUPLE = (
    "02030901000acc93030000000000000015f97dcbbd86a105000000000000004000c397fc1281709d1e00000000000008"
    "4000e56b61eec8804420000000000000f03f00"
)
COUNT_MIN = (
    "0000000100000000000000030000000100000004000000005d878bcc0000000000000000000000000000000100000000"
    "000000020000000000000000"
)
TOP_TEXTS = (
    "04010a030300000003000000000000000300000000000000000000000000000001000000000000000100000000000000"
    "01000000000000000100000031010000003001000000320000000000000000"
)
BLOOM = "0000000200000003000000000000000200010002020001000140000010080400"


def ask(name: str, image: str, *given: Any) -> Any:
    """What a function finds for one sketch."""
    columns = [pa.array([bytes.fromhex(image)]), *(pa.array([value]) for value in given)]
    return catalogue()[name].run()(*columns)[0].as_py()


@pytest.mark.parametrize(
    ("name", "image"), [("answer_distinct", HLL), ("answer_distinct_set", THETA), ("answer_tuple", TUPLE)]
)
def test_how_many_different(name: str, image: str) -> None:
    result = ask(name, image)
    assert result["estimate"] == pytest.approx(3) and result["lower"] <= 3 <= result["upper"]


def test_how_they_are_spread() -> None:
    rows = ask("answer_kll_quantiles_long", KLL_LONG, [0.0, 0.5, 1.0])["quantiles"]
    assert [row["value"] for row in rows] == [0, 1, 2]
    assert ask("answer_kll_quantiles_double", KLL_DOUBLE, 1.0)["quantiles"][0]["value"] == 1.0


def test_which_and_how_often() -> None:
    assert ask("answer_tuple", TUPLE)["totals"][0]["estimate"] == 1 + 2 + 3
    assert ask("count_frequency", COUNT_MIN, "1")["upper"] in (1, 2)
    state = {
        "sketch": bytes.fromhex(TOP_TEXTS),
        "maxItemsTracked": 6,
        "itemDataType": None,
        "itemDataTypeDDL": "item STRING NOT NULL",
    }
    states = pa.array([state], catalogue()["to_spark_top_k_string"].returns)
    image = catalogue()["from_spark_top_k"].run()(states)[0].as_py()
    result = ask("answer_top_k_string", image.hex())
    assert {row["item"]: row["upper"] for row in result} == {"0": 1, "1": 1, "2": 1}


def test_whether_it_is_there_at_all() -> None:
    assert [ask("contains_membership", BLOOM, item) for item in (0, 1, 2, 77)] == [True, True, True, False]
    other = Bloom.from_bytes(bytes.fromhex(BLOOM)).update([77])
    merged = catalogue()["merge_membership"].run()(pa.array([bytes.fromhex(BLOOM), other.to_bytes()]))
    assert Bloom.from_bytes(merged).contains([0, 1, 2, 77]).all()
