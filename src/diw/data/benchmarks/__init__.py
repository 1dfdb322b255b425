"""The benchmarks of the paper: what they are, where they are, and how they are read."""
