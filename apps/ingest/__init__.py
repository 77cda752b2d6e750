"""`streamgauge ingest`: an agent on the command line."""
