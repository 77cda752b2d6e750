"""Transformations of messages in an agent; `registry.INTERCEPTORS` lists them."""
