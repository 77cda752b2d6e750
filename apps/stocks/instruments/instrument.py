"""What one unit of a trade's size is."""

from __future__ import annotations

from typing import NamedTuple


class Instrument(NamedTuple):
    """How much of what one unit of size is, and in which currency its price stands.

    A unit is `contract` of the base: a share, a coin, a hundredth of a coin. Of an inverse (coin-margined)
    contract it is `contract` of `currency`, whatever the price: 100 dollars, paid in bitcoin.

    >>> Instrument("USD", 100.0, inverse=True).value(price=60_000.0, size=16)
    1600.0
    >>> Instrument("USDT", 0.01).value(price=60_000.0, size=16)
    9600.0
    """

    currency: str
    contract: float = 1.0
    inverse: bool = False

    def value(self, price: float, size: float) -> float:
        """What a trade is worth, in `currency`."""
        return size * self.contract if self.inverse else price * size * self.contract
