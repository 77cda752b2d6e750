"""The query server: tables of sketches followed live, and asked over HTTP."""
