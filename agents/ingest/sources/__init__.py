"""The sources of an agent's messages, one file per kind; `registry.SOURCES` lists them."""
