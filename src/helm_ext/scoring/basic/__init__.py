"""HELM's basic metrics computed in one pass, without the imports of HELM's own, and with equal results."""
