"""Serving tables over HTTP: questions and answers, live views, and limits that protect the server."""
