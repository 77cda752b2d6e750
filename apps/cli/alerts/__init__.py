"""`streamgauge alerts`: outlets and silences, candidates for other people and programs."""
