"""Run an app: a recording through the embedded broker, or a topic, on either engine."""
