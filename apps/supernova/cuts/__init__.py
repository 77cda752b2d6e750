"""Published cuts by name, as expressions over rows of alerts."""
