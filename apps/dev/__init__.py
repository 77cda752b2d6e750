"""Kafka and feeds for trials: an embedded broker, and recordings replayed at their own pace."""
