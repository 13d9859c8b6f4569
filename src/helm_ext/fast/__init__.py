"""HELM's own work, faster, with equal results."""
