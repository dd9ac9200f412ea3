"""Generated worlds of known truth, for tests, benchmarks and learning from scratch."""
