"""From a run entry to a RunSpec."""
