"""How far event time is: in a partition, over all partitions, and while a partition is silent."""
