"""Topics copied to an archive, and old files removed from it."""
