"""The consumer group: membership, rebalances, what earlier runs of the group left behind."""
