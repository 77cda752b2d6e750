"""`streamgauge demo`: apps on realistic generated messages, with their page."""
