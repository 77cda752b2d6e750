"""SQL on the command line."""
