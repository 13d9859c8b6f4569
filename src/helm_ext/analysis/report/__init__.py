"""A suite as one self-contained HTML page: how good each model is, how sure that is, and the rows behind it.

finished runs ──gathering──▶ facts ──page──▶ one HTML file
"""
