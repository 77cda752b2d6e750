"""Sketches as functions in Spark, in SQL and on Columns; one table, `catalogue`, defines both."""
