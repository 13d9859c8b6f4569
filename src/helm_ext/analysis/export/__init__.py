"""Finished runs as files for other tools: tables of predictions, and records of Every Eval Ever."""
