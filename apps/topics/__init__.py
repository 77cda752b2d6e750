"""What is in Kafka, on the screen or as JSON: its topics, and their messages decoded."""
