"""A fictional web server, for demos."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime

from ..app import Example, Message

_HOURS = 4
_HOUR = 3600
_PATHS = ("/", "/favicon.ico", "/cart", "/search", "/login", "/items/7", "/items/12", "/style.css", "/about")
_AGENTS = (
    "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0",
    "Mozilla/5.0 (iPhone) Safari/604.1",
    "curl/8.14",
    "Googlebot/2.1",
)
_SCANNER, _GUESSER = "sqlmap/1.8", "198.51.100.23"


def messages(seed: int, now_ms: int) -> Iterator[Message]:
    """Yield requests, about one every two seconds, from four hours before now on.

    An hour ago a quarter of them failed for ten minutes; half an hour ago an address guessed passwords, and a
    previously unseen scanner appeared.
    """
    dice = random.Random(seed)
    second = -float(_HOURS * _HOUR)
    while True:
        second += dice.expovariate(1 / 2)
        broken = -_HOUR <= second < -_HOUR + 600
        status = 502 if dice.random() < (0.25 if broken else 0.002) else dice.choice((200,) * 9 + (304, 404))
        address = f"192.0.2.{min(int(dice.expovariate(1 / 40)), 254)}"
        agent, path, guess = dice.choice(_AGENTS), dice.choice(_PATHS), -1800 <= second < -1680
        if guess and dice.random() < 0.5:
            address, path, status = _GUESSER, "/login", 401
        elif guess and dice.random() < 0.2:
            agent = _SCANNER
        seconds = dice.lognormvariate(-2.5, 0.8) * (4 if broken else 1)
        at_ms = now_ms + int(second * 1000)
        yield Message(
            _line(at_ms, address, path, status, dice.randrange(200, 40_000), agent, seconds), None, at_ms
        )


def _line(at_ms: int, address: str, path: str, status: int, size: int, agent: str, seconds: float) -> bytes:
    at = datetime.fromtimestamp(at_ms // 1000, UTC).strftime("%d/%b/%Y:%H:%M:%S +0000")
    return f'{address} - - [{at}] "GET {path} HTTP/1.1" {status} {size} "-" "{agent}" {seconds:.3f}'.encode()


EXAMPLE = Example(
    "access",
    messages,
    {"learn": "2h", "terms": "agent"},
    (("errors", None), ("brute force", _GUESSER), ("new term", _SCANNER)),
    log="access.log",
)
