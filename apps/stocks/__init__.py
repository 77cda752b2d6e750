"""Trades and bars: gains, drops, bands, halts, blocks, and anything unusual about a symbol."""
