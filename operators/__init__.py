"""How does it run straight off Kafka?"""
