"""Eclipse Sparkplug B: payloads with metric aliases that births define, and messages about nodes."""
