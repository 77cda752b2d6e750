"""What keeps a run going: its plans, its workers and mergers, what comes of them, and how it is doing."""
