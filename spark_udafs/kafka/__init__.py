"""The source `streamgauge-kafka`: reads and sketches Kafka inside Spark's Python workers."""
