"""What do people in this field want to know?"""
