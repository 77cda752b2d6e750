"""The formats of Binance, Coinbase, Polygon, Alpaca and others, and bars and trades in CSV."""
