"""Frames and files in, tables of sketches out: in this process, without Kafka, Java or Spark."""
