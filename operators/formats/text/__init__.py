"""Messages that are lines of text: CSV, syslog, access logs, plain text."""
