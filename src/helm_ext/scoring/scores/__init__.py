"""Scores that HELM does not have (or has wrong), and HELM's by name. Each module lists its own in `SCORES`."""
