"""What Binance, Coinbase, Polygon and Alpaca send, and bars and trades in CSV."""
