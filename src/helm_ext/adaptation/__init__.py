"""What is changed about a request, live or recorded."""

from helm_ext.adaptation.wrap import EvalSetAdapter, install

__all__ = ["EvalSetAdapter", "install"]
