"""The configuration of an app's run, and its results, for runners and for the page."""
