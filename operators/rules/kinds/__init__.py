"""The kinds of rules, a module for each."""
