"""Questions that people ask of streams, each with a short definition that answers it."""
