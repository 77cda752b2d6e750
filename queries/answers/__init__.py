"""Answers as rows, ordered and limited as a question requests."""
