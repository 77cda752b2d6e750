"""Where an agent's messages go; `registry.SINKS` lists them."""
