"""DECIMALs, beside Python's own."""

from __future__ import annotations

import random
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import pytest

from streamgauge.queries.sql.errors import SqlError

from ..scripts import last_rows, value

WIDE = Context(prec=200)


def _random(rng: random.Random, precision: int, scale: int) -> tuple[str, Decimal]:
    number = Decimal(rng.randrange(-(10**precision) + 1, 10**precision)).scaleb(-scale, WIDE)
    return f"CAST('{number:f}' AS DECIMAL({precision}, {scale}))", number


def _quotient(x: Decimal, y: Decimal, of_x: tuple[int, int], of_y: tuple[int, int]) -> Decimal | None:
    """With the digits that ksqlDB, Flink and Spark give it; half away from zero."""
    (p1, s1), (p2, s2) = of_x, of_y
    scale, whole = max(6, s1 + p2 + 1), p1 - s1 + s2
    scale = scale if whole + scale <= 38 else max(38 - whole, min(scale, 6))
    return None if not y else (WIDE.divide(x, y)).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, WIDE)


@pytest.mark.slow
def test_arithmetic_is_exact_or_null() -> None:
    rng = random.Random(5)
    for _ in range(60):
        sizes = [(p := rng.randrange(1, 39), rng.randrange(min(p, 19) + 1)) for _ in range(2)]
        (one, x), (other, y) = (_random(rng, *size) for size in sizes)
        for sign, result in (
            ("+", WIDE.add(x, y)),
            ("-", WIDE.subtract(x, y)),
            ("*", WIDE.multiply(x, y)),
            ("/", _quotient(x, y, *sizes)),
            ("%", None if not y else WIDE.remainder(x, y)),
        ):
            if sign in ("/", "%"):
                try:
                    came = value(f"{one} {sign} {other}")
                except SqlError as error:
                    assert "digits" in error.message and sum(max(size) for size in sizes) > 31
                    continue
                if came != result:
                    (p1, s1), (_, s2) = sizes
                    assert came is None and sign == "/" and p1 - s1 + s2 > 32, (one, sign, other)
                    assert abs(x).scaleb(s2 + 6, WIDE) >= 10**38
                continue
            came = value(f"{one} {sign} {other}")
            scale = -int(result.as_tuple().exponent)
            if came is None:
                largest = max(map(abs, (x, result, y if sign != "*" else x)))
                assert largest.scaleb(scale, WIDE) > 10**38 * Decimal("0.9999999")
            else:
                assert came == result, (one, sign, other)


def test_comparison_and_choice() -> None:
    price = "CAST('9.90' AS DECIMAL(10, 2))"
    assert value(
        "x = 9.9 AND x < 9.91 AND x > 9 AND x BETWEEN 9.9 AND 10 AND x IN (1, 9.9)".replace("x", price)
    )
    long = "9.9000000000000000001"  # a double is 9.9
    assert not value(f"{price} = {long}") and value(f"-({price}) > -{long}") and value(f"{long} > {price}")
    with pytest.raises(SqlError, match="at most 38 digits"):
        value(f"{price} = 9.{'9' * 38}")
    assert str(value("CASE WHEN x > 5 THEN x ELSE 0 END".replace("x", price))) == "9.90"
    assert str(value("COALESCE(CAST(NULL AS DECIMAL(4, 2)), 2)")) == "2.00"
    assert str(value("GREATEST(x, 2.125)".replace("x", price))) == "9.900"
    assert value("x * y".replace("x", price), y=0.5) == 4.95
    assert str(value("x * 1.1 - 1".replace("x", price))) == "9.890"
    assert str(value("-x".replace("x", price))) == "-9.90"


def test_cast_and_round() -> None:
    rng = random.Random(6)
    for _ in range(60):
        number = Decimal(rng.randrange(-(10**9), 10**9)).scaleb(-rng.randrange(8))
        scale = rng.randrange(5)
        unit = Decimal(1).scaleb(-scale)
        rounded = number.quantize(unit, ROUND_HALF_UP)
        assert value(f"CAST('{number:f}' AS DECIMAL(20, {scale}))") == rounded
        assert value(f"ROUND(CAST('{number:f}' AS DECIMAL(20, 8)), {scale})") == rounded
        assert value(f"CAST(CAST('{number:f}' AS DECIMAL(20, 8)) AS DECIMAL(20, {scale}))") == rounded
    assert value("CAST('1.2449999999999999999999999999999999999999' AS DECIMAL(10, 2))") == Decimal("1.24")
    assert value("CAST(1.255 AS DECIMAL(10, 2))") == Decimal("1.26")
    assert value("CAST('123.4' AS DECIMAL(3, 1))") is None and value("CAST('x' AS DECIMAL(3, 1))") is None
    assert value("CAST('9.96' AS DECIMAL(2, 1))") is None
    assert value("CAST('99999999999999999999999999999999999999.9' AS DECIMAL(38, 0))") is None
    assert value("CAST(CAST('-1.70' AS DECIMAL(3, 2)) AS INT)") == -1
    assert value("CAST(CAST('1.50' AS DECIMAL(3, 2)) AS VARCHAR)") == "1.50"


STREAM = """
CREATE STREAM s (id VARCHAR, p DECIMAL(10, 2)) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');
INSERT INTO s VALUES ('a', 1.25), ('b', 100), ('b', 0.05);
"""


def test_a_column_of_decimals() -> None:
    assert last_rows(STREAM + "SELECT p, p * p AS q FROM s WHERE p > 0.05;") == [
        ["1.25", "1.5625"],
        ["100.00", "10000.0000"],
    ]
    assert last_rows(STREAM + "SELECT id, MIN(p) AS a, MAX(p) AS b FROM s GROUP BY id ORDER BY id;") == [
        ["a", "1.25", "1.25"],
        ["b", "0.05", "100.00"],
    ]
    sums = "SELECT SUM(p) AS total, AVG(p) AS mean, SUM(p) / COUNT(*) AS exact, SUM(p * p) AS s FROM s;"
    assert last_rows(STREAM + sums) == [["101.30", 33.766666666666666, "33.766667", "10001.5650"]]
    by_id = "SELECT id, SUM(p) AS total FROM s GROUP BY id HAVING SUM(p) > 1.25 ORDER BY total;"
    assert last_rows(STREAM + by_id) == [["b", "100.05"]]
    parts = (
        "SELECT p / 3 AS q, MOD(-p, 0.4) AS r, p / 0 AS n, p % 0 AS m, p / CAST(0.5 AS DOUBLE) AS d FROM s"
        " WHERE id = 'a';"
    )
    assert last_rows(STREAM + parts) == [["0.416667", "-0.05", None, None, 2.5]]
    copied = "CREATE STREAM t AS SELECT id, p + 1 AS p FROM s; SELECT p FROM t;"
    assert last_rows(STREAM + copied) == [["2.25"], ["101.00"], ["1.05"]]


REFUSED: dict[str, Any] = {
    "SELECT SUM(CAST(p AS DECIMAL(29, 2))) AS x FROM s": "a SUM of a DECIMAL(29, 2) might need more than 38",
    "SELECT CAST(p AS DECIMAL(38, 2)) % CAST(p AS DECIMAL(38, 9)) AS x FROM s": "these numbers have up to",
    "SELECT ROUND(p, -1) AS x FROM s": "ROUND of a DECIMAL takes a number of digits from 0",
    "INSERT INTO s VALUES ('a', 1.255)": "the value must be a DECIMAL(10, 2), got 1.255",
    "INSERT INTO s VALUES ('a', 123456789.1)": "the value must be a DECIMAL(10, 2)",
    "CREATE STREAM t (p DECIMAL) WITH (KAFKA_TOPIC='t')": "a DECIMAL must have its precision and its scale",
    "CREATE STREAM t (p DECIMAL(39, 2)) WITH (KAFKA_TOPIC='t')": "the precision of a DECIMAL must be from 1",
    "CREATE STREAM t (p DECIMAL(2, 3)) WITH (KAFKA_TOPIC='t')": "the scale of a DECIMAL must be at most",
}


@pytest.mark.parametrize("statement", REFUSED)
def test_what_is_refused(statement: str) -> None:
    with pytest.raises(SqlError) as error:
        last_rows(STREAM + statement + ";")
    assert error.value.message.startswith(REFUSED[statement])
