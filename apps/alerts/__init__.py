"""What can be done with the outlets of alerts: trying them, and silencing them."""
