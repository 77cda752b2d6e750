"""Two sessions of three made-up stocks as Alpaca sends trades, in which all that rules report happens."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from typing import Any

OPENS = datetime(2026, 6, 1, 13, 30, tzinfo=UTC)
MINUTES = 390


def trades(seed: int = 1) -> list[dict[str, Any]]:
    """Three trades a minute of each stock, in the order of time.

    UP gains 12 % in its second session, little by little. SPLIT has four shares for one from the second
    session on. DOWN loses 8 % within two minutes of the second session.
    """
    dice = random.Random(seed)
    collected = []
    for session in (0, 1):
        for minute in range(MINUTES):
            for number in range(3):
                at = OPENS + timedelta(days=session, minutes=minute, milliseconds=100 * number)
                for symbol in ("UP", "SPLIT", "DOWN"):
                    price = _price(symbol, session, minute) * (1 + dice.uniform(-0.0005, 0.0005))
                    collected.append(
                        {
                            "T": "t",
                            "S": symbol,
                            "i": len(collected),
                            "x": dice.choice("DNQV"),
                            "p": round(price, 4),
                            "s": dice.randrange(1, 200),
                            "t": at.isoformat().replace("+00:00", "Z"),
                        }
                    )
    return collected


def _price(symbol: str, session: int, minute: int) -> float:
    if symbol == "UP":
        return 50.0 * (1 + session * 0.12 * minute / MINUTES)
    if symbol == "SPLIT":
        return 50.2 if session else 200.0
    fallen = session and minute >= 200
    return 80.0 * (0.92 if fallen and minute > 200 else 0.96 if fallen else 1.0)


def recording() -> list[bytes]:
    """The file's lines: with a block, a large trade, a duplicate, two in the wrong order, a list, noise."""
    result = trades()
    seven = 7 * MINUTES + 2_000
    result[seven] = {**result[seven], "s": 20_000}
    large = next(at for at in range(5_000, len(result)) if result[at]["S"] == "DOWN")
    result[large] = {**result[large], "s": 5_000}
    lines = [json.dumps(one) for one in result]
    same = next(
        (a, b)
        for a in range(6_000, len(result))
        for b in range(a + 1, a + 12)
        if (result[a]["S"], result[a]["x"]) == (result[b]["S"], result[b]["x"])
        and result[a]["t"][:16] == result[b]["t"][:16]
        and result[a]["t"] != result[b]["t"]
    )
    lines[same[0]], lines[same[1]] = lines[same[1]], lines[same[0]]
    lines.insert(3_001, lines[3_000])
    lines[100:103] = ["[" + ",".join(lines[100:103]) + "]"]
    lines.insert(0, '[{"T":"success","msg":"connected"}]')
    lines.insert(50, '{"T":"q","S":"UP","bp":1,"ap":2,"t":"2026-06-01T13:30:00Z"}')
    lines.insert(51, "{broken")
    return [line.encode() for line in lines]
