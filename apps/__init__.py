"""What does somebody in this field want to know?"""
