"""Where an agent's messages come from, a file a kind; `registry.SOURCES` lists them."""
