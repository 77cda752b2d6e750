"""Kafka and feeds for trying out: an embedded broker, and recordings sent at their own pace."""
