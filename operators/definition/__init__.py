"""The definition of a stream. Nothing here runs, or knows an engine."""
