"""What a run of an app is to do, and what came of it: for those who run one, and for its page."""
