"""Which rows stand for all?"""
