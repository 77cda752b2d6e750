"""The query server: tables of sketches followed live, and queried over HTTP."""
