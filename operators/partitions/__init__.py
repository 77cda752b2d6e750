"""A partition's messages on their way to a delta: decoded, joined, sketched, and how far they are."""
