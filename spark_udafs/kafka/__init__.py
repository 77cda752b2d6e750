"""The source `streamgauge-kafka`: Kafka read and sketched inside Spark's Python workers."""
