"""The progress of event time: in a partition, over all partitions, and while a partition is silent."""
