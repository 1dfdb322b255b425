"""The paper's tables and figures from run records, ours beside theirs.

experiment.json + runs → results → tables, claims, figures → write (files) → page
"""
