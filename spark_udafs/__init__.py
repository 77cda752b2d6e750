"""How does it run on Spark?"""
