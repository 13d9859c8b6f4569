"""Finished runs: how sure their numbers are, and which of two models is better."""
