"""Sketches by name in Spark, in SQL and as Columns: one table of functions, `catalogue`, makes both."""
