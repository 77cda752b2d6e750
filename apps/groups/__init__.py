"""Consumer groups of streams, by the command line."""
