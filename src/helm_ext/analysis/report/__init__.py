"""A suite as one self-contained HTML page: how good each model is, how sure that is, and the rows behind it.

finished runs ──gathering──▶ facts ──page──▶ one HTML file
"""

from helm_ext.analysis.report.page import write_report

__all__ = ["write_report"]
