"""`streamgauge demo`: apps on messages that are made up as they would come, with their page."""
