"""Eclipse Sparkplug B: payloads whose metrics go by aliases that births define, and messages about nodes."""
