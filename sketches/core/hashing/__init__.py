"""Hash functions with the constants of DataSketches and Spark, and random numbers for samples."""
