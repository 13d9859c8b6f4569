"""Where batches of rows are done, and how far they are: this process, processes of this machine, Ray."""
