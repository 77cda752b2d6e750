"""What an agent does to messages on their way; `registry.INTERCEPTORS` lists them."""
