"""The consumer group: membership, rebalances, and state left by the group's earlier runs."""
