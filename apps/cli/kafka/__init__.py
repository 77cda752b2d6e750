"""`streamgauge kafka`: brokers for experiments, topics and consumer groups."""
