"""The meaning of one unit of a trade's size."""

from __future__ import annotations

from typing import NamedTuple


class Instrument(NamedTuple):
    """The amount that one unit of size stands for, and the currency of the price.

    A unit is `contract` times the base: a share, a coin, a hundredth of a coin. For an inverse
    (coin-margined) contract, it is `contract` times `currency`, whatever the price: 100 dollars, paid in
    bitcoin.

    >>> Instrument("USD", 100.0, inverse=True).value(price=60_000.0, size=16)
    1600.0
    >>> Instrument("USDT", 0.01).value(price=60_000.0, size=16)
    9600.0
    """

    currency: str
    contract: float = 1.0
    inverse: bool = False

    def value(self, price: float, size: float) -> float:
        """Return the value of a trade, in `currency`."""
        return size * self.contract if self.inverse else price * size * self.contract
