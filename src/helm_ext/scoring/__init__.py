"""Completion to answer to score."""
