"""Sketches of DataFrames, and tables of sketches as DataFrames."""
