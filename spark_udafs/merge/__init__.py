"""Tables of sketches merged inside Spark: by Catalyst's aggregates, or by our own in buckets."""
