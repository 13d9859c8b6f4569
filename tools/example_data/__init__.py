"""What the example datasets are made of: one module a file, each with `build() -> Example`."""
