"""Generated and recorded streams, replayed into Kafka."""
