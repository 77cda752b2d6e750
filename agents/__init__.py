"""How do messages get into Kafka and out of it unchanged?"""
