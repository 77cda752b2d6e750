"""The live page of every app: what it shows, its routes on the query server, and the page itself."""
