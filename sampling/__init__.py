"""Which rows stand for all?

One folder a sample, laid out as those of `sketches`; what they all stand on is in `core`.
"""
