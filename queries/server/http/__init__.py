"""Served tables over HTTP: questions and answers, live views, what keeps the server within bounds."""
