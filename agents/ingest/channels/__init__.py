"""What keeps messages between a source and a sink; `registry.CHANNELS` lists them."""
