"""Buffers between a source and a sink; `registry.CHANNELS` lists them."""
