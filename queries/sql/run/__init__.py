"""Running statements: a session, its brokers or memory, and its stored tables."""
