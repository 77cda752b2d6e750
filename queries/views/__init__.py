"""Tables that can be queried: stored ones, and those of running groups, merged and cached."""
