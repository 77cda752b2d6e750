"""Merge tables of sketches inside Spark: by Catalyst's aggregates, or by our own merge in buckets."""
