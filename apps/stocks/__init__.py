"""Trades and bars: gains, drops, bands, halts, blocks, what is unusual of a symbol."""
