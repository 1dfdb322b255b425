"""From finished run records to a reader's eyes; nothing here trains or imports torch.

records → summary → comparison (its table and its finding) → figures → page; `paper` holds the
tables and figures of `diw reproduce`.
"""
