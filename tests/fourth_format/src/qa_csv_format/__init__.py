"""A fourth format: CSV files with the columns `question` and `answer`."""
