"""Planning parsed statements as streams and as questions."""
