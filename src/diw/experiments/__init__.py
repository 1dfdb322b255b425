"""Runs as data: what to run, and running it.

`catalogue` (the paper's results) → `plan` (their runs) → `reproduce` (those asked for);
`sources` (the data of a run) → `execute` (one run) → `grid` (many) and `estimate` (how long).
"""
