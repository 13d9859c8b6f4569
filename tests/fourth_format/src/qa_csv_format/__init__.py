"""A format of its own: CSV files with the columns `question` and `answer`."""
