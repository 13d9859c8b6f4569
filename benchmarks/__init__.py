"""What an evaluation costs around the model. `python -m benchmarks --help`."""
